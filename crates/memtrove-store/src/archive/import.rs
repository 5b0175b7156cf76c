//! From an archive to a store, one unit of work for every batch of rows.

use super::export::{ArchiveProgress, Selection, checksum_moved_back};
use super::format::{Batch, Header, Summary};
use super::mark::{Mark, PLAIN_CONTENT};
use super::numbers::Numbers;
use super::tables::{By, Column, Owner, TABLES, Table};
use super::{ArchiveError, rows};
use crate::{AllTenants, Store, StoreError, TextDocument, Tx, TxExt, Value, meta, nodes, vault};
use memtrove_core::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Servers that said so within this time are running.
const SEEN: Duration = Duration::from_secs(30);

/// The terms that a text is found by.
pub type Terms = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// An import that is under way.
pub struct Import {
    store: Store,
    header: Header,
    terms: Terms,
    mark: Mark,
    /// Rows of the archive that were handed over to this one.
    seen: u64,
    /// Whether the archive has every column that the store has: only then their digests can be compared.
    complete: bool,
}

/// How an import ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Whether what the store holds now was read again, and is what the archive holds.
    pub compared: bool,
}

impl Import {
    /// Begins an import, or goes on with the one of the same archive that was broken off. `tenants` are those the archive has
    /// rows of, where that is known. Refuses what would not go together, before anything is written.
    pub async fn begin(
        store: Store,
        header: Header,
        tenants: Option<BTreeSet<String>>,
        terms: Terms,
        now: Timestamp,
    ) -> Result<Self, ArchiveError> {
        try_keys(&store, &header).await?;
        let (about, shared) = (header.clone(), store.is_shared());
        let begin = move |tx: &mut dyn Tx| {
            tx.lock(b"import")?;
            if shared {
                refuse_running(tx, now)?;
            }
            admit(tx, &about, tenants.as_ref())
        };
        let mark = store.write(AllTenants, "import_begin", begin).await?;
        Ok(Self { store, header, terms, mark, seen: 0, complete: true })
    }

    /// How many rows an earlier run has written.
    pub fn rows_before(&self) -> u64 {
        self.mark.rows
    }

    /// Writes some rows, unless they are there from an earlier run.
    pub async fn write(&mut self, batch: Batch) -> Result<(), ArchiveError> {
        self.complete &= batch.columns.len() == batch.table.columns.len();
        let before = self.seen;
        self.seen += batch.rows;
        if self.seen <= self.mark.rows {
            return Ok(());
        }
        let (expected, done) = (Mark { rows: before, ..self.mark }, Mark { rows: self.seen, ..self.mark });
        let (terms, table) = (Arc::clone(&self.terms), batch.table.name);
        let write = move |tx: &mut dyn Tx| {
            tx.lock(b"import")?;
            match Mark::find(tx)? {
                Some(mark) if mark == expected => {}
                // It was committed, and only the answer got lost.
                Some(mark) if mark == done => return Ok(()),
                _ => return Err(ArchiveError::Refused("another import works on this store".into())),
            }
            put(tx, &batch, &done, &terms)?;
            Ok(done.put(tx)?)
        };
        self.store.write(AllTenants, "import", write).await.map_err(|error| match error {
            ArchiveError::Store(StoreError::Constraint(what)) => ArchiveError::Refused(format!(
                "a row of table {table} cannot be taken in, because the store has one under the same key ({what}): import \
                 into an empty store"
            )),
            error => error,
        })?;
        self.mark = done;
        Ok(())
    }

    /// Ends the import, after the last batch of an archive that was read to its end: sees to it that no number is given twice,
    /// reads everything again to compare it with the archive, and takes the mark off.
    pub async fn finish(
        self,
        archive: &Summary,
        progress: impl Fn(ArchiveProgress) + Send + Sync + 'static,
    ) -> Result<ImportOutcome, ArchiveError> {
        let (numbers, moved) = (self.header.numbers, self.mark.moved);
        self.store.write(AllTenants, "import_numbers", move |tx| numbers.are_given(tx, &moved)).await?;
        let tenant = self.header.tenant.clone();
        // Rows of many tenants among those of others cannot be told apart.
        let compared = self.complete && (self.mark.fresh || tenant.is_some());
        if compared {
            let shared = self.store.is_shared();
            let held = move |tx: &mut dyn Tx| {
                let of = Selection { tenant: tenant.as_deref(), shared };
                checksum_moved_back(tx, &of, &moved, &progress)
            };
            let held = self.store.read(AllTenants, "import_compare", held).await?;
            if held.digest != archive.digest {
                return Err(ArchiveError::Refused(format!(
                    "the store does not hold what the archive holds: its digest is {} with {} rows, and the archive's is {} with \
                     {} rows. Somebody else may have written in between; no server starts on it. Begin again with an empty store",
                    held.digest, held.rows, archive.digest, archive.rows
                )));
            }
        }
        self.store.write(AllTenants, "import_end", Mark::remove).await?;
        Ok(ImportOutcome { compared })
    }
}

/// Refuses a store that servers work on: they would show half an import, and keep what they know of an empty store.
fn refuse_running(tx: &mut dyn Tx, now: Timestamp) -> Result<(), ArchiveError> {
    let since = Timestamp::from_micros(now.as_micros() - SEEN.as_micros() as i64);
    let running = nodes::seen_since(tx, since)?;
    if running.is_empty() {
        return Ok(());
    }
    let places = nodes::places(tx, since)?;
    let each = running.iter().map(|node| {
        let place = places.iter().find(|(id, _)| *id == node.id);
        let place = place.map_or_else(|| format!("node {}", node.id), |(_, place)| place.to_string());
        let ago = (now.as_micros() - node.seen_at.as_micros()).max(0) / 1_000_000;
        format!("{place}, last seen {ago} s ago")
    });
    let each = each.collect::<Vec<_>>().join("; ");
    let (who, them) = match running.len() {
        1 => ("a server runs".to_owned(), "it"),
        several => (format!("{several} servers run"), "them"),
    };
    Err(ArchiveError::Refused(format!(
        "{who} on this store ({each}): stop {them}, then import. One that was killed could not say so, and counts for {} s \
         after it was last seen",
        SEEN.as_secs()
    )))
}

/// Decides what becomes of an archive in this store, and marks it.
fn admit(tx: &mut dyn Tx, header: &Header, tenants: Option<&BTreeSet<String>>) -> Result<Mark, ArchiveError> {
    let refused = |why: &str| Err(ArchiveError::Refused(why.to_owned()));
    match Mark::find(tx)? {
        Some(mark) if mark.archive == header.id => return Ok(mark),
        Some(_) => {
            return refused(
                "an import of another archive has not come to its end here: run `memtrove import` with that one again, or begin \
                 with an empty store",
            );
        }
        None => {}
    }
    let fresh = is_empty(tx)?;
    let moved = if fresh { Numbers::default() } else { Numbers::given(tx)? };
    if !fresh {
        let one = header.tenant.clone().map(|tenant| BTreeSet::from([tenant]));
        let Some(tenants) = one.as_ref().or(tenants) else {
            return refused(
                "the store has data, and which tenants this archive has is known only when it was read to its end: import it \
                 from a file instead of a pipe, or into an empty store",
            );
        };
        for tenant in tenants {
            if let Some(table) = table_with(tx, tenant)? {
                return refused(&format!(
                    "the store has data of tenant '{tenant}' already (in table {table}): import into an empty store, or into \
                     one where nothing of that tenant is"
                ));
            }
        }
        if !header.keys.is_empty() && moved.move_what_is_sealed() {
            return refused(
                "the archive's content is encrypted and bound to its place, and other content is in that place here: import it \
                 into an empty store",
            );
        }
    }
    if header.plain {
        meta::set(tx, PLAIN_CONTENT, Some(&[1]))?;
    }
    let mark = Mark { archive: header.id, rows: 0, fresh, moved };
    mark.put(tx)?;
    Ok(mark)
}

fn is_empty(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    // A server that was started once has made the key of digests.
    for table in TABLES.iter().filter(|table| table.by != By::Replacing) {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", table.name);
        if tx.first(&sql, &[], |_| Ok(()))?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A table that has rows of a tenant.
fn table_with(tx: &mut dyn Tx, tenant: &str) -> Result<Option<&'static str>, StoreError> {
    for table in TABLES.iter().filter(|table| table.owner == Owner::Tenant) {
        let sql = format!("SELECT 1 FROM {} WHERE tenant = $1 LIMIT 1", table.name);
        if tx.first(&sql, &[tenant.into()], |_| Ok(()))?.is_some() {
            return Ok(Some(table.name));
        }
    }
    Ok(None)
}

/// How a trial ended, which is never kept.
enum Trial {
    Passed,
    Failed(StoreError),
}

impl From<StoreError> for Trial {
    fn from(error: StoreError) -> Self {
        Trial::Failed(error)
    }
}

/// Refuses an archive whose content the configured keys could not read: asks the vault what it would say of a store with such
/// keys and such content, in a unit of work that is undone.
async fn try_keys(store: &Store, header: &Header) -> Result<(), ArchiveError> {
    let header = header.clone();
    let trial = move |tx: &mut dyn Tx| -> Result<(), Trial> {
        for (at, key) in (0_u128..).zip(&header.keys) {
            tx.execute(
                "INSERT INTO data_keys (id, tenant, wrapped, wrapped_by, active) VALUES ($1, '', $1, $2, 0)",
                &[at.to_be_bytes().as_slice().into(), key.as_str().into()],
            )?;
        }
        if header.plain {
            meta::set(tx, PLAIN_CONTENT, Some(&[1]))?;
            tx.execute(
                "INSERT INTO conversations (tenant, id, group_id, owner_user_id, has_history, created_at, updated_at, metadata) \
                 VALUES ('', $1, $1, '', 0, 0, 0, '')",
                &[Uuid::nil().into()],
            )?;
        }
        vault::check(tx)?;
        Err(Trial::Passed)
    };
    match store.write(AllTenants, "import_trial", trial).await {
        Ok(()) | Err(Trial::Passed) => Ok(()),
        Err(Trial::Failed(StoreError::Schema(why))) => Err(ArchiveError::Refused(format!(
            "what the archive holds could not be read here. With it in the store, a start would be refused: {why}"
        ))),
        Err(Trial::Failed(error)) => Err(error.into()),
    }
}

/// Writes rows as their table wants them.
fn put(tx: &mut dyn Tx, batch: &Batch, mark: &Mark, terms: &Terms) -> Result<(), StoreError> {
    let mut rest = &*batch.bytes;
    let rows = std::iter::from_fn(|| {
        let row = rows::take_row(&mut rest, batch.columns.iter().copied())?;
        let moved = batch.columns.iter().zip(row).map(|(column, value)| mark.moved.move_on(column, value));
        Some(moved.collect::<Vec<_>>())
    });
    match batch.table.by {
        By::Replacing if !mark.fresh => Ok(()),
        By::Inserting => insert(tx, batch.table, &batch.columns, rows, ""),
        By::Adding => insert(tx, batch.table, &batch.columns, rows, " ON CONFLICT DO NOTHING"),
        By::Replacing => {
            let instead = " ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            insert(tx, batch.table, &batch.columns, rows, instead)
        }
        By::Indexing => {
            let mut tenants = Tenants::default();
            for row in rows {
                let document = document(&batch.columns, &row, terms)?;
                let tenant = tenants.of(tx, document.group)?;
                tx.index_text(TextDocument { tenant, ..document })?;
            }
            Ok(())
        }
    }
}

/// Each row is a statement of its own, which is not awaited: values that are null would make many statements of one that
/// takes several.
fn insert<'a>(
    tx: &mut dyn Tx,
    table: &Table,
    columns: &[&Column],
    rows: impl Iterator<Item = Vec<Value<'a>>>,
    conflict: &str,
) -> Result<(), StoreError> {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let values: Vec<String> = (1..=columns.len()).map(|at| format!("${at}")).collect();
    let (names, values) = (names.join(", "), values.join(", "));
    let sql = format!("INSERT INTO {} ({names}) VALUES ({values}){conflict}", table.name);
    for row in rows {
        tx.post(&sql, &row)?;
    }
    Ok(())
}

/// A text as search takes it, whose tenant is still to be found.
fn document(columns: &[&Column], row: &[Value<'_>], terms: &Terms) -> Result<TextDocument, StoreError> {
    let value = |name: &str| {
        let at = columns.iter().position(|column| column.name == name);
        at.and_then(|at| row.get(at)).copied().unwrap_or(Value::Null)
    };
    let id = |name: &str| match value(name) {
        Value::Uuid(id) => Ok(id),
        _ => Err(StoreError::Broken(format!("a text of the archive has no {name}"))),
    };
    let text = match value("text") {
        Value::Text(text) => text,
        _ => return Err(StoreError::Broken("a text of the archive has no text".into())),
    };
    let by_agent = match value("by_agent") {
        Value::Int(by_agent) => Some(by_agent != 0),
        _ => None,
    };
    Ok(TextDocument {
        is_new: true,
        id: id("id")?,
        tenant: String::new(),
        group: id("group_id")?,
        conversation: id("conversation_id")?,
        text: text.to_owned(),
        by_agent,
        terms: terms(text),
    })
}

/// The tenants of trees. Texts come in the order of their ids, so that neighbours are often of one tree.
#[derive(Default)]
struct Tenants(Option<(Uuid, String)>);

impl Tenants {
    /// The tenant of a tree; none where there is only what is left of one.
    fn of(&mut self, tx: &mut dyn Tx, group: Uuid) -> Result<String, StoreError> {
        if let Some((known, tenant)) = &self.0
            && *known == group
        {
            return Ok(tenant.clone());
        }
        let tenant = tx.first("SELECT tenant FROM groups WHERE id = $1", &[group.into()], |row| {
            Ok(row.text(0)?.to_owned())
        })?;
        let tenant = tenant.unwrap_or_default();
        self.0 = Some((group, tenant.clone()));
        Ok(tenant)
    }
}
