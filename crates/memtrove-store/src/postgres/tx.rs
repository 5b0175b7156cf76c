//! The port's transaction on one connection.

use super::batch::StatementBatch;
use super::connection::DatabaseSession;
use super::failure::{DatabaseFailure, Remedy};
use super::keys::BusyKeys;
use super::row::{Parameter, PostgresRow, type_of};
use super::{feed, text};
use crate::port::EachRow;
use crate::vault::Vault;
use crate::vectors::VectorIndex;
use crate::{
    Compaction, FeedEntry, Lock, Recorded, StoreError, TenantScope, TextDocument, TextHit, TextQuery, Tx,
    TxExt, Value,
};
use futures_util::TryStreamExt;
use futures_util::future::maybe_done;
use memtrove_core::identity::Tenant;
use memtrove_core::legacy_labels::POSTGRES_TENANT_SETTING;
use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio_postgres::Statement;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// How often work of the engine itself is run.
const ALONE_TRIES: usize = 50;
const ONLY_READS: &str = "a unit of work that only reads tried to write";

/// A unit of work on a connection. Nothing is sent before its first statement.
pub(super) struct PostgresTx<'s> {
    session: &'s mut DatabaseSession,
    vault: &'s Arc<Vault>,
    writable: bool,
    begun: bool,
    /// The keys of this process, if there are any to heed.
    keys: Option<&'s BusyKeys>,
    /// Those it holds there.
    own: Vec<i64>,
    /// One that another unit of work here holds, and this one wanted.
    wanted: Option<i64>,
    /// The keys it holds, or has asked for, as the database knows them.
    held: Vec<i64>,
    /// Whether an answer of the database was waited for.
    waited: bool,
    /// Whose rows the policies let it see.
    tenants: &'s TenantScope,
    /// Why a statement failed: nothing more runs then.
    failed: Option<DatabaseFailure>,
    /// Whether the feed has something to be numbered.
    has_changes: bool,
    /// Statements that are to be sent as one; `None` if they are to be sent as they come.
    batch: Option<StatementBatch>,
}

/// How a commit ended.
pub(super) enum Committed {
    /// It is durable. The feed has something new, or not.
    Yes { has_changes: bool },
    /// Nothing was written.
    No(DatabaseFailure),
    /// The connection was lost on the way.
    Unknown,
}

impl<'s> PostgresTx<'s> {
    pub(super) fn new(
        session: &'s mut DatabaseSession,
        vault: &'s Arc<Vault>,
        tenants: &'s TenantScope,
        writable: bool,
    ) -> Self {
        Self {
            session,
            vault,
            writable,
            begun: false,
            keys: None,
            own: Vec::new(),
            wanted: None,
            held: Vec::new(),
            waited: false,
            tenants,
            failed: None,
            has_changes: false,
            batch: None,
        }
    }

    /// Heeds the keys of this process, of which it has these already.
    pub(super) fn with_keys(mut self, keys: &'s BusyKeys, own: Vec<i64>) -> Self {
        (self.keys, self.own) = (Some(keys), own);
        self
    }

    /// The keys of this process that it holds, for its worker to give back; and the one it could not have.
    pub(super) fn take_keys(&mut self) -> (Vec<i64>, Option<i64>) {
        (std::mem::take(&mut self.own), self.wanted.take())
    }

    /// Why a statement failed, if one did.
    pub(super) fn failure(&mut self) -> Option<DatabaseFailure> {
        self.failed.take()
    }

    /// Makes what was written durable.
    pub(super) fn commit(mut self) -> Committed {
        if !self.begun {
            self.release();
            return Committed::Yes { has_changes: false };
        }
        if !self.writable {
            self.control("COMMIT");
            self.session.flush();
            return Committed::Yes { has_changes: false };
        }
        if self.send_batch().is_err() {
            let failure = self
                .failed
                .take()
                .unwrap_or_else(|| DatabaseFailure::broken("a statement could not be sent"));
            self.roll_back();
            return Committed::No(failure);
        }
        // A key that could not be had fails outside of the transaction, which would commit nevertheless.
        if !self.held.is_empty()
            && !self.waited
            && let Err(failure) = self.session.wait(async { Ok(()) })
        {
            self.roll_back();
            return Committed::No(failure);
        }
        self.end("COMMIT");
        let ended = self.session.wait(async { Ok(()) });
        match ended {
            Ok(()) => Committed::Yes { has_changes: self.has_changes },
            Err(failure) if failure.remedy == Remedy::Reconnect && !failure.is_answer => Committed::Unknown,
            Err(failure) => Committed::No(failure),
        }
    }

    /// Undoes what was written.
    pub(super) fn roll_back(mut self) {
        self.batch = None;
        if self.begun {
            self.end("ROLLBACK");
            // What failed before is known.
            let _ = self.session.wait(async { Ok(()) });
        }
        self.release();
    }

    /// Ends the transaction and gives back the keys, in one message.
    fn end(&mut self, how: &'static str) {
        let released = self.held.drain(..).map(|key| format!("; SELECT pg_advisory_unlock({key})"));
        let sql: String = std::iter::once(how.to_owned()).chain(released).collect();
        self.control(sql);
    }

    /// Gives back the keys of a transaction that never began. The answer is not awaited.
    fn release(&mut self) {
        for key in std::mem::take(&mut self.held) {
            self.control(format!("SELECT pg_advisory_unlock({key})"));
            self.session.flush();
        }
    }

    fn control(&mut self, sql: impl Into<Cow<'static, str>>) {
        let (client, sql) = (self.session.client().clone(), sql.into());
        self.session.post(async move { client.batch_execute(&sql).await });
    }

    /// What every statement but a posted one begins with.
    fn begin(&mut self) -> Result<(), StoreError> {
        self.send_batch()?;
        self.begin_transaction()
    }

    fn send_batch(&mut self) -> Result<(), StoreError> {
        let Some(batch) = self.batch.take().filter(|batch| !batch.is_empty()) else {
            return Ok(());
        };
        let (sql, types, parameters) = batch.joined();
        let statement = self.session.statement(&sql, &types).map_err(|failure| self.fail(failure))?;
        let client = self.session.client().clone();
        self.session.post(async move { client.execute_raw(&statement, parameters).await.map(drop) });
        Ok(())
    }

    fn begin_transaction(&mut self) -> Result<(), StoreError> {
        self.healthy()?;
        if !self.begun {
            self.begun = true;
            let begin = if self.writable { "BEGIN" } else { "BEGIN READ ONLY" };
            // One message: to name the tenant costs no round trip.
            self.control(format!("{begin}; {}", set_tenant(self.tenants)));
        }
        Ok(())
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.failed.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    fn writing(&self) -> Result<(), StoreError> {
        self.healthy()?;
        if self.writable {
            return Ok(());
        }
        Err(StoreError::Broken(ONLY_READS.into()))
    }

    fn fail(&mut self, mut failure: DatabaseFailure) -> StoreError {
        if failure.is_read_only && !self.writable {
            failure = DatabaseFailure::broken(ONLY_READS);
        }
        let error = failure.error.clone();
        self.failed.get_or_insert(failure);
        error
    }

    /// Sends a statement without waiting for it.
    pub(super) fn send(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.begin()?;
        let statement = self.statement(sql, params)?;
        let parameters: Vec<Parameter> = params.iter().map(Parameter::from).collect();
        let client = self.session.client().clone();
        self.session.post(async move { client.execute_raw(&statement, parameters).await.map(drop) });
        Ok(())
    }

    /// Runs a query that finds rows by terms which name their tenant or scope. Only then the database uses its index of
    /// terms: see the migration that made the policies.
    pub(super) fn by_terms<T>(
        &mut self,
        query: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        const SAY: &str = "SELECT set_config('memtrove.names_tenant_in_terms', $1, true)";
        self.send(SAY, &["on".into()])?;
        let found = query(self);
        // Also where the reader of the rows refused one: the transaction may go on. After a failure it does not.
        if self.failed.is_none() {
            self.send(SAY, &["off".into()])?;
        }
        found
    }

    fn statement(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Statement, StoreError> {
        let types: Vec<Type> = params.iter().map(type_of).collect();
        let statement = self.session.statement(sql, &types).map_err(|failure| self.fail(failure))?;
        Ok(statement)
    }
}

/// What the policies read as every tenant. No tenant has a control character in its name.
const EVERY_TENANT: &str = "\u{1}all";

/// Names the tenants of a transaction to the policies, until it ends.
pub(super) fn set_tenant(tenants: &TenantScope) -> String {
    let name = tenants.tenant().map_or(EVERY_TENANT, Tenant::as_str);
    format!("SET LOCAL {POSTGRES_TENANT_SETTING} = '{}'", name.replace('\'', "''"))
}

/// Names all tenants to the policies, for as long as the session lasts.
pub fn set_every_tenant() -> String {
    format!("SET {POSTGRES_TENANT_SETTING} = '{EVERY_TENANT}'")
}

/// Runs work of the engine itself in a transaction of its own, again where another came first.
pub(super) fn alone(
    session: &mut DatabaseSession,
    vault: &Arc<Vault>,
    work: impl Fn(&mut dyn Tx) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for _ in 0..ALONE_TRIES {
        let mut tx = PostgresTx::new(session, vault, &TenantScope::All, true);
        let done = work(&mut tx);
        let failure = match (tx.failure(), done) {
            (Some(failure), _) => {
                tx.roll_back();
                failure
            }
            (None, Err(error)) => {
                tx.roll_back();
                return Err(error);
            }
            (None, Ok(())) => match tx.commit() {
                Committed::Yes { .. } => return Ok(()),
                Committed::No(failure) => failure,
                Committed::Unknown => {
                    return Err(StoreError::Unavailable("the connection to the database was lost".into()));
                }
            },
        };
        if !matches!(failure.remedy, Remedy::RunAgain | Remedy::RunAgainRarely) {
            return Err(failure.error);
        }
    }
    Err(StoreError::Unavailable("too many processes open the database at once: try again".into()))
}

/// The column that holds a table's numbers.
fn numbered_column(table: &str) -> &'static str {
    if table == "memories" { "no" } else { "id" }
}

/// A key as the database knows it.
pub(super) fn key_number(key: &[u8]) -> i64 {
    let digest = blake3::hash(key);
    let mut number = [0; 8];
    number.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_be_bytes(number)
}

impl Tx for PostgresTx<'_> {
    fn vault(&self) -> &Arc<Vault> {
        self.vault
    }

    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.begin()?;
        let statement = self.statement(sql, params)?;
        let parameters: Vec<Parameter> = params.iter().map(Parameter::from).collect();
        let client = self.session.client().clone();
        let mut sent = Box::pin(maybe_done(async move { client.execute_raw(&statement, parameters).await }));
        let _ = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.waited = true;
        let ran = self.session.wait(async {
            sent.as_mut().await;
            match sent.as_mut().take_output() {
                Some(ran) => ran.map_err(|error| DatabaseFailure::from(&error)),
                None => Err(DatabaseFailure::broken("a statement has no answer")),
            }
        });
        ran.map_err(|failure| self.fail(failure))
    }

    fn post(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.writing()?;
        match &mut self.batch {
            Some(batch) if batch.takes(sql) => {
                batch.add(sql, params);
                self.begin_transaction()
            }
            _ => self.send(sql, params),
        }
    }

    fn begin_batch(&mut self) {
        if self.writable && self.batch.is_none() {
            self.batch = Some(StatementBatch::default());
        }
    }

    fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        lock: Lock,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.begin()?;
        let sql: Cow<'_, str> = match lock {
            Lock::None => sql.into(),
            Lock::Rows => format!("{sql} FOR UPDATE").into(),
            Lock::SkipLocked => format!("{sql} FOR UPDATE SKIP LOCKED").into(),
        };
        let statement = self.statement(&sql, params)?;
        let parameters: Vec<Parameter> = params.iter().map(Parameter::from).collect();
        let client = self.session.client().clone();
        let mut sent = Box::pin(async move { client.query_raw(&statement, parameters).await });
        let mut early = match sent.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        self.waited = true;
        // What is left of an answer is read where something was written: it may yet be a failure.
        let reads_on = self.writable;
        let ran = self.session.wait(async {
            let answer = poll_fn(|cx| match early.take() {
                Some(answer) => Poll::Ready(answer),
                None => sent.as_mut().poll(cx),
            });
            let mut rows = pin!(answer.await.map_err(|error| DatabaseFailure::from(&error))?);
            while let Some(row) = rows.try_next().await.map_err(|error| DatabaseFailure::from(&error))? {
                match each(&PostgresRow(row)) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) if reads_on => {
                        while rows.try_next().await.map_err(|error| DatabaseFailure::from(&error))?.is_some()
                        {
                        }
                        break;
                    }
                    Ok(ControlFlow::Break(())) => break,
                    Err(error) => return Ok(Err(error)),
                }
            }
            Ok(Ok(()))
        });
        ran.unwrap_or_else(|failure| Err(self.fail(failure)))
    }

    fn lock(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.writing()?;
        let number = key_number(key);
        if let Some(keys) = self.keys.filter(|_| !self.own.contains(&number)) {
            if !keys.take(number) {
                self.wanted = Some(number);
                return Err(self.fail(DatabaseFailure::new(StoreError::Overloaded, Remedy::WaitForKey)));
            }
            self.own.push(number);
        }
        if self.begun {
            return self.post("SELECT pg_advisory_xact_lock($1)", &[number.into()]);
        }
        // Before the transaction begins, so that its snapshot is taken after the key's holder has committed.
        self.held.push(number);
        let statement = self.statement("SELECT pg_advisory_lock($1)", &[number.into()])?;
        let client = self.session.client().clone();
        let message = async move { client.execute_raw(&statement, [Parameter::Int(number)]).await.map(drop) };
        self.session.post(message);
        Ok(())
    }

    fn record_change(&mut self, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
        self.writing()?;
        self.has_changes = true;
        feed::record(self, change)
    }

    fn has_unnumbered_changes(&mut self) -> Result<bool, StoreError> {
        feed::has_unnumbered(self)
    }

    fn number_changes(&mut self) -> Result<bool, StoreError> {
        self.writing()?;
        feed::number(self)
    }

    fn last_number(&mut self, table: &str) -> Result<i64, StoreError> {
        let sql = format!("SELECT last_value, is_called FROM {table}_{}_seq", numbered_column(table));
        let tx: &mut dyn Tx = self;
        let last = tx.first(&sql, &[], |row| Ok(if row.int(1)? == 0 { 0 } else { row.int(0)? }))?;
        Ok(last.unwrap_or_default())
    }

    fn number_past(&mut self, table: &str, number: i64) -> Result<(), StoreError> {
        if self.last_number(table)? < number {
            let sequence = format!("{table}_{}_seq", numbered_column(table));
            self.post("SELECT setval(CAST($1 AS regclass), $2)", &[sequence.as_str().into(), number.into()])?;
        }
        Ok(())
    }

    fn index_text(&mut self, document: TextDocument) -> Result<(), StoreError> {
        self.writing()?;
        text::index(self, &document)
    }

    fn unindex_text(&mut self, id: Uuid) -> Result<(), StoreError> {
        self.writing()?;
        text::unindex(self, id)
    }

    fn unindex_group(&mut self, group: Uuid) -> Result<(), StoreError> {
        self.writing()?;
        text::unindex_group(self, group)
    }

    /// What deleted rows left behind is vacuum's.
    fn compact_texts(&mut self, _: Option<Compaction>) -> Result<Option<Compaction>, StoreError> {
        self.writing().map(|()| None)
    }

    fn has_untaken_texts(&mut self) -> Result<bool, StoreError> {
        text::has_untaken(self)
    }

    fn untaken_texts(&mut self, group: Option<Uuid>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
        text::untaken(self, group, after, limit)
    }

    fn count_untaken_texts(&mut self, limit: i64) -> Result<i64, StoreError> {
        text::count_untaken(self, limit)
    }

    fn take_in_texts(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        text::take_in(self, numbers)
    }

    fn search_text(
        &mut self,
        query: &TextQuery,
        each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        text::search(self, query, each)
    }

    fn vectors(&mut self) -> Option<&mut dyn VectorIndex> {
        if self.vault.is_plain() { Some(self) } else { None }
    }
}
