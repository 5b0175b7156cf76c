//! What a failure of the database means.

use crate::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What can be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another unit of work came first: run this one again.
    RunAgain,
    /// The same, unless it happens again and again: then it is the unit's own doing.
    RunAgainRarely,
    /// Another unit of work of this process holds a key: run this one when it is given back.
    WaitForKey,
    /// The connection is of no use any more.
    Reconnect,
    /// Nothing.
    None,
}

/// A failure, as the unit of work that met it is told.
#[derive(Debug, Clone)]
pub(super) struct DatabaseFailure {
    pub error: StoreError,
    pub remedy: Remedy,
    /// Whether the database said so, and stays: then it is known that nothing was done.
    pub is_answer: bool,
    /// Whether it is that nothing can be written here: by a unit of work that only reads, or on a standby.
    pub is_read_only: bool,
}

impl DatabaseFailure {
    pub(super) fn new(error: StoreError, remedy: Remedy) -> Self {
        Self { error, remedy, is_answer: false, is_read_only: false }
    }

    pub(super) fn broken(what: impl Into<String>) -> Self {
        Self::new(StoreError::Broken(what.into()), Remedy::None)
    }
}

impl From<&Error> for DatabaseFailure {
    fn from(error: &Error) -> Self {
        let Some(cause) = error.as_db_error() else {
            return if error.is_closed()
                || std::error::Error::source(error).is_some_and(|e| e.is::<std::io::Error>())
            {
                let lost = StoreError::Unavailable("the connection to the database was lost".into());
                Self::new(lost, Remedy::Reconnect)
            } else {
                Self::broken(full(error))
            };
        };
        let message = cause.message().to_owned();
        let unavailable = |why: String| StoreError::Unavailable(why);
        let (error, remedy) = match cause.code() {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
                (StoreError::Overloaded, Remedy::RunAgain)
            }
            // What failed before it was not looked at.
            &SqlState::IN_FAILED_SQL_TRANSACTION => (StoreError::Broken(message), Remedy::RunAgainRarely),
            &SqlState::UNIQUE_VIOLATION => (StoreError::Constraint(message), Remedy::RunAgainRarely),
            &SqlState::CHARACTER_NOT_IN_REPERTOIRE | &SqlState::UNTRANSLATABLE_CHARACTER => {
                (StoreError::Unstorable("a text must not contain U+0000".into()), Remedy::None)
            }
            &SqlState::LOCK_NOT_AVAILABLE => (StoreError::Overloaded, Remedy::None),
            &SqlState::QUERY_CANCELED => {
                (unavailable("the database took too long for a statement".into()), Remedy::None)
            }
            &SqlState::READ_ONLY_SQL_TRANSACTION => (
                unavailable("nothing can be written to this database: it is a standby".into()),
                Remedy::Reconnect,
            ),
            // Somebody migrated the schema under a prepared statement.
            &SqlState::FEATURE_NOT_SUPPORTED if message.contains("cached plan") => {
                (StoreError::Broken(message), Remedy::Reconnect)
            }
            // The last two: a file that cannot be read, and one that is not there.
            &SqlState::DATA_CORRUPTED
            | &SqlState::INDEX_CORRUPTED
            | &SqlState::IO_ERROR
            | &SqlState::UNDEFINED_FILE => (
                StoreError::Damaged(format!(
                    "the database is damaged ({message}, {}): see the log of PostgreSQL, and restore a backup",
                    cause.code().code()
                )),
                Remedy::None,
            ),
            code if code.code().starts_with("23") => (StoreError::Constraint(message), Remedy::None),
            // Connection failures, a server that stops or starts, and one that has no room for another connection.
            code if ["08", "57", "53"].iter().any(|class| code.code().starts_with(class)) => {
                (unavailable(format!("the database is not available: {message}")), Remedy::Reconnect)
            }
            code => (StoreError::Broken(format!("{message} ({})", code.code())), Remedy::None),
        };
        // The state is the same in every language, which the severity is not.
        let stays = !cause.code().code().starts_with("57P") && !cause.code().code().starts_with("08");
        let is_read_only = cause.code() == &SqlState::READ_ONLY_SQL_TRANSACTION;
        Self { error, remedy, is_answer: stays, is_read_only }
    }
}

/// An error with its causes, which the driver leaves out.
pub(super) fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
