//! Why an archive cannot be written, read or taken in.

use crate::StoreError;

/// Why an archive cannot be written, read or taken in. Nothing was changed unless the sentence says so.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// What the archive is written to, or read from, failed.
    #[error("the archive cannot be {doing}: {why}")]
    Io {
        /// `read` or `written`.
        doing: &'static str,
        /// What the system says.
        why: std::io::Error,
    },
    /// There is nothing in it.
    #[error("the archive is empty: there is not a byte in it")]
    Empty,
    /// It ends before its end.
    #[error("the archive is cut off {place}: the file ends before the archive does; use another copy of it")]
    CutOff {
        /// Up to where it is good.
        place: String,
    },
    /// It is something else.
    #[error("this is not a memtrove archive: `memtrove export` writes them")]
    Foreign,
    /// It was made by a version that knows more.
    #[error("{0}: import it with the version that made it, or a newer one")]
    Newer(String),
    /// It is not as it was written.
    #[error("the archive is damaged {place}: {why}; use another copy of it")]
    Damaged {
        /// Up to where it is good.
        place: String,
        /// What is wrong there.
        why: String,
    },
    /// It does not go together with the store.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArchiveError {
    pub(super) fn writing(why: std::io::Error) -> Self {
        Self::Io { doing: "written", why }
    }

    pub(super) fn reading(why: std::io::Error) -> Self {
        Self::Io { doing: "read", why }
    }

    pub(super) fn damaged(place: &str, why: impl Into<String>) -> Self {
        Self::Damaged { place: place.to_owned(), why: why.into() }
    }
}
