//! What a change of a file comes with: why it is made, where a move leads, and what makes a request the repetition of another.

use super::{Code, FilePath, body};
use crate::{Error, Result};
use serde_json::{Map, Value};

/// What a change governed by a profile says of itself, which nothing looks at yet.
const OF_PROFILES: [&str; 3] = ["profile_id", "binding_id", "confidence"];
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

    /// Reads the members `reason` and `evidence` of a body.
    pub fn read(members: &Map<String, Value>) -> Result<Self> {
        body::refuse_unsupported(members, &OF_PROFILES)?;
        let reason = body::text(members, "reason")?.map(str::to_owned);
        Self::new(reason, body::member(members, "evidence").cloned())
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
    use serde_json::json;

    fn reasons(body: Value) -> Result<Reasons> {
        Reasons::read(body.as_object().unwrap())
    }

    #[test]
    fn a_reason_is_a_text_and_evidence_is_anything_and_both_have_an_end() {
        assert_eq!(reasons(json!({})).unwrap(), Reasons::default());
        assert_eq!(reasons(json!({"reason": null, "evidence": null})).unwrap(), Reasons::default());
        let both = reasons(json!({"reason": "r".repeat(256), "evidence": {"seen": [1]}})).unwrap();
        assert_eq!((both.reason().map(str::len), both.evidence()), (Some(256), Some(&json!({"seen": [1]}))));
        for (body, field) in [
            (json!({"reason": 1}), "reason"),
            (json!({"reason": "r".repeat(257)}), "reason"),
            (json!({"evidence": "e".repeat(64_000)}), "evidence"),
            (json!({"profile_id": "p"}), "profile_id"),
        ] {
            let refused = reasons(body).unwrap_err();
            assert_eq!(detail(&refused, "field").as_deref(), Some(field));
            assert_eq!(code::<()>(Err(refused)), "INVALID_REQUEST");
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
