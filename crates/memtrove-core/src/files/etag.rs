//! Versions of a file, and what `If-Match` makes of them.

use super::Code;
use crate::{Error, Result};
use std::fmt;
use uuid::Uuid;

/// One version of a file. The change's id makes it unique for ever: a file that is recreated after it was deleted or
/// forgotten counts its revisions from the beginning again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ETag {
    /// How many changes led to this version.
    pub revision: i64,
    /// The change that made it.
    pub change: Uuid,
}

impl ETag {
    /// Whether a header names exactly this version. A weak validator, a list, or one without quotes never does.
    pub fn matches(&self, header: &str) -> bool {
        header.trim() == self.to_string()
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}-{}\"", self.revision, self.change.simple())
    }
}

/// What a mutation expects of the file it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePrecondition {
    /// `*`: where a file is written, that there is none yet; where it is deleted or moved, that there is one. (Only the
    /// second is the usual meaning of `If-Match: *`.)
    Star,
    /// That it is at this version.
    Matches(String),
}

impl FilePrecondition {
    /// Reads the `If-Match` of a write, which none goes without.
    pub fn read(header: Option<&str>) -> Result<Self> {
        Self::parse(header).ok_or_else(|| {
            let message = "If-Match is required: the ETag of the version to change, or * to create the file";
            Error::new(Code::MissingIfMatch, message)
        })
    }

    /// Reads the `If-Match` of what takes a file from its path.
    pub fn read_removal(header: Option<&str>) -> Result<Self> {
        Self::parse(header).ok_or_else(|| {
            let message = "If-Match is required: the ETag of the version you have seen, or * for any version";
            Error::new(Code::MissingIfMatch, message)
        })
    }

    fn parse(header: Option<&str>) -> Option<Self> {
        match header.map(str::trim) {
            None | Some("") => None,
            Some("*") => Some(Self::Star),
            Some(etag) => Some(Self::Matches(etag.to_owned())),
        }
    }

    /// Decides a `PUT` on a file that is at `current`, or missing: whether it may be made, or replaced.
    pub fn put(&self, current: Option<ETag>) -> Result<()> {
        match (self, current) {
            (Self::Star, None) => Ok(()),
            (Self::Matches(header), Some(etag)) if etag.matches(header) => Ok(()),
            _ => Err(self.mismatch(current)),
        }
    }

    /// Decides a `PATCH` on a file that is at `current`, or missing.
    pub fn patch(&self, current: Option<ETag>) -> Result<()> {
        match (self, current) {
            (_, None) => Err(Error::new(Code::DocumentNotFound, "there is no such file")),
            (Self::Matches(header), Some(etag)) if etag.matches(header) => Ok(()),
            _ => Err(self.mismatch(current)),
        }
    }

    /// Decides whether a file that is at `current`, or missing, may leave its path.
    pub fn removal(&self, current: Option<ETag>) -> Result<()> {
        match (self, current) {
            (Self::Star, Some(_)) => Ok(()),
            _ => self.patch(current),
        }
    }

    /// The refusal of a version that is not the current one: what is wrong, and what to do.
    fn mismatch(&self, current: Option<ETag>) -> Error {
        let Some(etag) = current else {
            let message = "If-Match names a version, but there is no such file; create it with If-Match: *";
            return Error::new(Code::EtagMismatch, message);
        };
        let text = etag.to_string();
        let message = match self {
            Self::Star => {
                "the file exists already, and If-Match: * only creates; send the ETag of its version"
            }
            Self::Matches(header) if header.contains(text.trim_matches('"')) => {
                "If-Match must be the ETag exactly, with its quotes, alone and without W/"
            }
            Self::Matches(_) => "the file is at another version than If-Match expects; read it and try again",
        };
        Error::new(Code::EtagMismatch, message).with_text("latest_etag", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{code, detail};

    fn etag(revision: i64) -> ETag {
        ETag { revision, change: Uuid::from_u128(0xABCD << 64 | revision as u128) }
    }

    fn if_match(header: &str) -> FilePrecondition {
        FilePrecondition::read(Some(header)).unwrap()
    }

    #[test]
    fn an_etag_is_quoted_and_matches_nothing_but_itself() {
        let etag = etag(7);
        let text = etag.to_string();
        assert_eq!(text, "\"7-000000000000abcd0000000000000007\"");
        assert!(etag.matches(&text) && etag.matches(&format!(" {text}\t")));
        let others = [
            format!("W/{text}"),
            format!("{text}, {text}"),
            text.to_uppercase(),
            text.trim_matches('"').to_owned(),
            "*".to_owned(),
            String::new(),
        ];
        for other in others {
            assert!(!etag.matches(&other), "{other}");
        }
    }

    #[test]
    fn if_match_is_required() {
        for header in [None, Some(""), Some(" \t")] {
            assert_eq!(code(FilePrecondition::read(header)), "MISSING_IF_MATCH");
            assert_eq!(code(FilePrecondition::read_removal(header)), "MISSING_IF_MATCH");
        }
        assert_eq!(if_match(" * "), FilePrecondition::Star);
        assert_eq!(if_match(" \"x\" "), FilePrecondition::Matches("\"x\"".to_owned()));
    }

    #[test]
    fn put_creates_with_a_star_and_replaces_the_version_it_names() {
        let (current, other) = (etag(2), etag(1).to_string());
        assert_eq!(if_match("*").put(None), Ok(()));
        assert_eq!(if_match(&current.to_string()).put(Some(current)), Ok(()));
        for header in ["*", other.as_str()] {
            let refused = if_match(header).put(Some(current)).unwrap_err();
            assert_eq!(detail(&refused, "latest_etag").unwrap(), current.to_string());
            assert_eq!(code::<()>(Err(refused)), "ETAG_MISMATCH");
        }
        let refused = if_match(&other).put(None).unwrap_err();
        assert_eq!(detail(&refused, "latest_etag"), None);
        assert_eq!(code::<()>(Err(refused)), "ETAG_MISMATCH");
    }

    #[test]
    fn patch_needs_the_file_and_its_version() {
        let (current, other) = (etag(2), etag(1).to_string());
        assert_eq!(if_match(&current.to_string()).patch(Some(current)), Ok(()));
        for header in ["*", other.as_str()] {
            assert_eq!(code(if_match(header).patch(None)), "DOCUMENT_NOT_FOUND");
            let refused = if_match(header).patch(Some(current)).unwrap_err();
            assert_eq!(detail(&refused, "latest_etag").unwrap(), current.to_string());
            assert_eq!(code::<()>(Err(refused)), "ETAG_MISMATCH");
        }
    }

    #[test]
    fn removal_needs_the_file_at_the_version_it_names_or_with_a_star_at_any() {
        let (current, other) = (etag(2), etag(1).to_string());
        for header in ["*", &current.to_string()] {
            assert_eq!(if_match(header).removal(Some(current)), Ok(()));
            assert_eq!(code(if_match(header).removal(None)), "DOCUMENT_NOT_FOUND");
        }
        let refused = if_match(&other).removal(Some(current)).unwrap_err();
        assert_eq!(detail(&refused, "latest_etag").unwrap(), current.to_string());
        assert_eq!(code::<()>(Err(refused)), "ETAG_MISMATCH");
    }
}
