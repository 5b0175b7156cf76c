//! The path of a file, checked before anything is sent.

use crate::{Error, Result};
use memtrove_core::files::FilePath as Rules;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The path of a file within its scope, such as `projects/memtrove.md`.
///
/// ```
/// # use memtrove_client::FilePath;
/// let path: FilePath = "/projects/memtrove.md".parse()?; // a slash at either end is trimmed
/// assert_eq!(path.as_str(), "projects/memtrove.md");
/// assert!("../secrets".parse::<FilePath>().is_err());
/// # Ok::<(), memtrove_client::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct FilePath(String);

impl FilePath {
    /// Reads a path, by the rules that the service has too.
    pub fn new(path: impl AsRef<str>) -> Result<Self> {
        let path = path.as_ref();
        match Rules::parse(path.trim_matches('/')) {
            Ok(checked) => Ok(Self(checked.as_str().to_owned())),
            Err(error) => Err(Error::invalid(format!("'{}': {error}", path.escape_debug()))),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FilePath {
    type Err = Error;

    fn from_str(path: &str) -> Result<Self> {
        Self::new(path)
    }
}

impl TryFrom<&str> for FilePath {
    type Error = Error;

    fn try_from(path: &str) -> Result<Self> {
        Self::new(path)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}
