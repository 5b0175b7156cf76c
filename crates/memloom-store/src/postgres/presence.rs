//! Who may use a database at the same time: any number of nodes, or one process that changes what all content is sealed with.

use super::PostgresConfig;
use super::connection::Session;
use super::failure::Failure;
use super::tx::key_number;
use crate::StoreError;

/// Held by every node for others to share, and by whoever must be alone for itself.
const PRESENCE: &[u8] = b"memloom is here";

/// The key as the database knows it.
pub(super) fn key() -> i64 {
    key_number(PRESENCE)
}

/// Refuses a node while somebody must be alone, and the other way round. Whoever must be alone is so until the session ends.
pub(super) fn admit(config: &PostgresConfig, first: &mut Session) -> Result<Option<Session>, StoreError> {
    if !config.vault.is_rotating() {
        let free = ask(first, "pg_try_advisory_lock_shared")? && ask(first, "pg_advisory_unlock_shared")?;
        return if free {
            Ok(None)
        } else {
            Err(refusal("its keys are being rotated: wait until that is done"))
        };
    }
    let mut session = Session::connect(config, None)?;
    match ask(&mut session, "pg_try_advisory_lock")? {
        true => Ok(Some(session)),
        false => Err(refusal("other memloom processes use it: stop them first")),
    }
}

fn refusal(why: &str) -> StoreError {
    StoreError::Unavailable(format!("the database cannot be opened: {why}"))
}

fn ask(session: &mut Session, function: &str) -> Result<bool, StoreError> {
    let client = session.client().clone();
    let asked = session.wait(async {
        let sql = format!("SELECT {function}({})", key());
        client.query_one(&sql, &[]).await.map(|row| row.get(0)).map_err(|error| Failure::from(&error))
    });
    asked.map_err(|failure| failure.error)
}
