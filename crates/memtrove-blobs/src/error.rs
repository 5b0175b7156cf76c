//! What can go wrong with a blob.

use std::io;

/// Why a blob could not be written, read or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// There is no blob of that key.
    #[error("there is no such blob")]
    Missing,
    /// The store does not let us do this.
    #[error("the store denies access: check its credentials and permissions")]
    Denied,
    /// The store did not do it, and might if it is asked again.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The stored bytes are not what was sealed: cut, changed, swapped, or meant for something else.
    #[error("the stored bytes are not what was written")]
    Damaged,
    /// It makes no sense to ask this.
    #[error("{0}")]
    Invalid(String),
}

/// The longest message of a store that is passed on; some send pages.
const LONGEST: usize = 300;

impl BlobError {
    /// Whatever else a store said, on one line.
    pub(crate) fn unavailable(reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        let words: Vec<&str> = reason.split_whitespace().collect();
        Self::Unavailable(words.join(" ").chars().take(LONGEST).collect())
    }

    /// The blob was replaced between two looks at it.
    pub(crate) fn replaced() -> Self {
        Self::Unavailable("the blob was replaced while it was read".into())
    }

    pub(crate) fn beyond(range: &std::ops::Range<u64>, length: u64) -> Self {
        Self::Invalid(format!("the range {range:?} begins beyond the end at {length}"))
    }
}

impl From<io::Error> for BlobError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                Self::Invalid("one key is a folder of another".into())
            }
            _ => Self::unavailable(error),
        }
    }
}

impl From<object_store::Error> for BlobError {
    fn from(error: object_store::Error) -> Self {
        use object_store::Error;
        match error {
            Error::NotFound { .. } => Self::Missing,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Denied,
            Error::InvalidPath { source } => Self::Invalid(source.to_string()),
            // The same news from different stores: one says 409 to what another answers 412.
            Error::Precondition { .. } | Error::AlreadyExists { .. } | Error::NotModified { .. } => {
                Self::replaced()
            }
            other => Self::unavailable(other),
        }
    }
}
