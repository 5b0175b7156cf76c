//! Versions of a file, and what a change expects of them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version of a file. Opaque: it is compared and sent back, never read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ETag(String);

impl ETag {
    /// The text, with its quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ETag {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for ETag {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a change expects of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// That there is none yet.
    CreateNew,
    /// That it is at this version.
    Matches(ETag),
}

impl Precondition {
    /// The value of `If-Match`.
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::CreateNew => "*",
            Self::Matches(etag) => etag.as_str(),
        }
    }
}

impl From<ETag> for Precondition {
    fn from(etag: ETag) -> Self {
        Self::Matches(etag)
    }
}

impl From<&ETag> for Precondition {
    fn from(etag: &ETag) -> Self {
        Self::Matches(etag.clone())
    }
}

/// Which version of a file a removal is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileVersion {
    /// Whatever version it is at; there must be one.
    Any,
    /// This one.
    Matches(ETag),
}

impl FileVersion {
    /// The value of `If-Match`.
    pub(crate) fn header(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::Matches(etag) => etag.as_str(),
        }
    }
}

impl From<ETag> for FileVersion {
    fn from(etag: ETag) -> Self {
        Self::Matches(etag)
    }
}

impl From<&ETag> for FileVersion {
    fn from(etag: &ETag) -> Self {
        Self::Matches(etag.clone())
    }
}
