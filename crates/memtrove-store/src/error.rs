//! What an engine can answer instead of a result.

/// Why a unit of work did not happen. Nothing of it was written, but for one case that says so.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The queue is full: the caller should back off and try again.
    #[error("the store's queue is full")]
    Overloaded,
    /// The store cannot work now (disk full, read-only, connection lost); it may later.
    #[error("{0}")]
    Unavailable(String),
    /// Another process has the store, and does not share it.
    #[error("{0}")]
    InUse(String),
    /// The connection was lost during the commit: it happened or not.
    #[error("{0}")]
    Unknown(String),
    /// A unique or foreign key said no: a race that the caller may resolve by looking again.
    #[error("constraint violated: {0}")]
    Constraint(String),
    /// A text that the engine cannot hold: the caller's mistake, where no earlier check found it.
    #[error("{0}")]
    Unstorable(String),
    /// The stored schema is not one this version can work with.
    #[error("{0}")]
    Schema(String),
    /// What is stored cannot be read any more: pages or rows are not what was written. It does not mend itself.
    #[error("{0}")]
    Damaged(String),
    /// A defect, here or in the engine.
    #[error("{0}")]
    Broken(String),
}

impl From<StoreError> for memtrove_core::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded => memtrove_core::Error::overloaded(1),
            StoreError::Unavailable(why) | StoreError::InUse(why) | StoreError::Damaged(why) => {
                memtrove_core::Error::storage_unavailable(why)
            }
            StoreError::Unknown(_) => memtrove_core::Error::TIMEOUT,
            StoreError::Unstorable(why) => memtrove_core::Error::bad_request(why),
            StoreError::Constraint(what) | StoreError::Schema(what) | StoreError::Broken(what) => {
                memtrove_core::Error::internal(what)
            }
        }
    }
}
