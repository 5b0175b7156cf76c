//! Who may use a database at the same time: any number of nodes, or one process that changes what all content is sealed with.

use super::connection::DatabaseSession;
use super::failure::DatabaseFailure;
use super::tx::key_number;
use super::{PostgresConfig, VOLATILE_SCHEMA};
use crate::StoreError;
use memtrove_core::legacy_labels;

/// Every node holds it shared; a process that must be alone holds it for itself.
pub(super) fn key() -> i64 {
    key_number(legacy_labels::POSTGRES_PRESENCE_LOCK)
}

/// Lets a node in beside others, or one that must be alone; says whether it is the first. It is present for as long as the
/// session is open.
///
/// What need not outlive the processes that use a database goes when the first of them comes: no other process uses it then.
pub(super) fn admit(config: &PostgresConfig) -> Result<(DatabaseSession, bool), StoreError> {
    let mut session = DatabaseSession::connect(config, None)?;
    let is_first = ask(&mut session, "SELECT pg_try_advisory_lock($1)")?;
    if is_first {
        forget_volatile(&mut session)?;
    }
    if config.vault.is_rotating() {
        let refused = || refusal("other memtrove processes use it: stop them first");
        return if is_first { Ok((session, true)) } else { Err(refused()) };
    }
    if is_first {
        ask(&mut session, "SELECT pg_try_advisory_lock_shared($1)")?;
        ask(&mut session, "SELECT pg_advisory_unlock($1)")?;
    } else {
        // The first process needs a moment; a rotation of keys takes longer than we wait.
        ask(&mut session, "SELECT true FROM pg_advisory_lock_shared($1)")
            .map_err(|_| refusal("its keys are being rotated: wait until that is done"))?;
    }
    Ok((session, is_first))
}

/// Makes a session of a node present, unless somebody must be alone.
pub(super) fn join(session: &mut DatabaseSession) -> Result<(), StoreError> {
    match ask(session, "SELECT pg_try_advisory_lock_shared($1)")? {
        true => Ok(()),
        false => Err(refusal("its keys are being rotated")),
    }
}

fn refusal(why: &str) -> StoreError {
    StoreError::Unavailable(format!("the database cannot be opened: {why}"))
}

fn ask(session: &mut DatabaseSession, question: &'static str) -> Result<bool, StoreError> {
    let client = session.client().clone();
    let asked = session.wait(async {
        client
            .query_one(question, &[&key()])
            .await
            .map(|row| row.get(0))
            .map_err(|error| DatabaseFailure::from(&error))
    });
    asked.map_err(|failure| failure.error)
}

/// Empties the tables of the volatile twin, if it was ever there.
fn forget_volatile(session: &mut DatabaseSession) -> Result<(), StoreError> {
    let client = session.client().clone();
    let tables = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables \
                  WHERE schemaname = $1 AND tablename <> 'schema_steps'";
    let emptied = session.wait(async {
        let row = client
            .query_one(tables, &[&VOLATILE_SCHEMA])
            .await
            .map_err(|error| DatabaseFailure::from(&error))?;
        match row.get::<_, Option<String>>(0) {
            Some(tables) => client.batch_execute(&format!("TRUNCATE {tables}")).await,
            None => Ok(()),
        }
        .map_err(|error| DatabaseFailure::from(&error))
    });
    emptied.map_err(|failure| failure.error)
}
