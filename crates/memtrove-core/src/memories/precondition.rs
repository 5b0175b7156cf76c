//! Versions on the wire: `If-Match`, `If-None-Match` and the member `version`.

use super::{Code, Memory};
use crate::{Error, Result};

/// What a request expects of the entry it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// That there is one, at whatever version: no header, or `*`.
    #[default]
    Exists,
    /// That it carries one of these tags.
    Tagged(Vec<String>),
}

impl Precondition {
    /// Reads `If-Match`. A weak tag never matches, nor does one that is not quoted.
    pub fn if_match(header: Option<&str>) -> Self {
        match header.map(str::trim) {
            None | Some("*") => Self::Exists,
            Some(tags) => Self::Tagged(tags.split(',').map(|tag| tag.trim().to_owned()).collect()),
        }
    }

    /// The same, with the version that the body expects.
    pub fn and_version(self, version: Option<i64>) -> Result<Self> {
        let Some(version) = version else { return Ok(self) };
        let expected = tag(version);
        match self {
            Self::Tagged(tags) if !tags.contains(&expected) => {
                let message = "contradicts If-Match; leave one of them out, or make them agree";
                Err(Error::field("version", message))
            }
            _ => Ok(Self::Tagged(vec![expected])),
        }
    }

    /// Whether it can fail on an entry that is there.
    pub fn is_conditional(&self) -> bool {
        *self != Self::Exists
    }

    /// Refuses an entry at another version.
    pub fn check(&self, memory: &Memory) -> Result<()> {
        match self {
            Self::Exists => Ok(()),
            Self::Tagged(tags) if tags.contains(&memory.etag()) => Ok(()),
            Self::Tagged(_) => {
                let message = "the memory is at another version than expected; read it and try again";
                Err(Error::new(Code::EtagMismatch, message)
                    .with("latest_etag", memory.etag())
                    .with("latestVersion", memory.version))
            }
        }
    }
}

/// Whether `If-None-Match` names this version, so that the caller has it already. Weakness does not matter here.
pub fn is_known(if_none_match: Option<&str>, memory: &Memory) -> bool {
    let Some(tags) = if_none_match else { return false };
    let etag = memory.etag();
    tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn tag(version: i64) -> String {
    format!("\"v{version}\"")
}

#[cfg(test)]
mod tests;
