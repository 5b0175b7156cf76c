//! What a change of a file comes with: why it is made, where a move leads, and what makes a request the repetition of another.

use super::{Code, FilePath};
use crate::{Error, Result};
use serde_json::Value;

const MAX_REASON_CHARS: usize = 256;
const MAX_EVIDENCE_CHARS: usize = 64_000;
const MAX_KEY_CHARS: usize = 128;

/// Why a change is made, as the caller says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasons {
    reason: Option<String>,
    evidence: Option<Value>,
}

impl Reasons {
    /// A reason and its evidence, if they are not too long.
    pub fn new(reason: Option<String>, evidence: Option<Value>) -> Result<Self> {
        let too_long = |field: &str, limit: usize| {
            let message = format!("'{field}' must have at most {limit} characters");
            Error::new(Code::InvalidRequest, message).with_text("field", field)
        };
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARS) {
            return Err(too_long("reason", MAX_REASON_CHARS));
        }
        if evidence.as_ref().is_some_and(|evidence| evidence.to_string().chars().count() > MAX_EVIDENCE_CHARS)
        {
            return Err(too_long("evidence", MAX_EVIDENCE_CHARS));
        }
        Ok(Self { reason, evidence })
    }

    /// The reason.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// What the caller shows for it, as it was sent.
    pub fn evidence(&self) -> Option<&Value> {
        self.evidence.as_ref()
    }
}

/// Where a file is and where it goes, which is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovePaths {
    from: FilePath,
    to: FilePath,
}

impl MovePaths {
    /// Refuses a path that is both.
    pub fn new(from: FilePath, to: FilePath) -> Result<Self> {
        if from == to {
            let message = "'from' and 'to' are the same path: the file is there already";
            return Err(Error::new(Code::InvalidRequest, message).with_text("field", "to"));
        }
        Ok(Self { from, to })
    }

    /// Where the file is.
    pub fn from(&self) -> &FilePath {
        &self.from
    }

    /// Both, taken apart: where it is, where it goes.
    pub fn into_parts(self) -> (FilePath, FilePath) {
        (self.from, self.to)
    }
}

/// A key under which a request is answered once, and a digest of the request that carries it: the same key on another request
/// is a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    text: String,
    fingerprint: String,
}

impl IdempotencyKey {
    /// Reads the header `Idempotency-Key`, if there is one.
    pub fn read(header: Option<String>, fingerprint: impl FnOnce() -> String) -> Result<Option<Self>> {
        let Some(text) = header else { return Ok(None) };
        if text.is_empty() || text.len() > MAX_KEY_CHARS || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("Idempotency-Key must be 1..{MAX_KEY_CHARS} visible ASCII characters");
            return Err(Error::new(Code::InvalidIdempotencyKey, message));
        }
        Ok(Some(Self { text, fingerprint: fingerprint() }))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The digest of the request.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::testing::{code, detail};

    #[test]
    fn a_reason_and_its_evidence_have_an_end() {
        let reasons = |reason: usize, evidence: usize| {
            Reasons::new(Some("r".repeat(reason)), Some("e".repeat(evidence).into()))
        };
        assert!(reasons(256, 63_998).is_ok());
        for (reason, evidence, field) in [(257, 0, "reason"), (0, 63_999, "evidence")] {
            let refused = reasons(reason, evidence).unwrap_err();
            assert_eq!(detail(&refused, "field").as_deref(), Some(field));
        }
    }

    #[test]
    fn a_file_is_moved_to_another_path() {
        let path = |text: &str| FilePath::parse(text).unwrap();
        let (from, to) = MovePaths::new(path("a.md"), path("b.md")).unwrap().into_parts();
        assert_eq!((from.as_str(), to.as_str()), ("a.md", "b.md"));
        let refused = MovePaths::new(path("a.md"), path("a.md")).unwrap_err();
        assert_eq!(detail(&refused, "field").as_deref(), Some("to"));
        assert_eq!(code::<()>(Err(refused)), "INVALID_REQUEST");
    }

    #[test]
    fn a_key_is_visible_ascii() {
        let read = |key: &str| IdempotencyKey::read(Some(key.to_owned()), || "digest".to_owned());
        assert_eq!(IdempotencyKey::read(None, String::new).unwrap(), None);
        let key = read("order-1").unwrap().unwrap();
        assert_eq!((key.as_str(), key.fingerprint()), ("order-1", "digest"));
        assert!(read(&"k".repeat(128)).is_ok());
        for wrong in ["", " ", "a b", "schlüssel", &"k".repeat(129)] {
            assert_eq!(code(read(wrong)), "INVALID_IDEMPOTENCY_KEY", "{wrong}");
        }
    }
}
