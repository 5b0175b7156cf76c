//! One spelling for all JSON values that say the same, and digests of it.
//!
//! Made by hand: RFC 8785, which libraries follow, writes numbers as 64-bit floats and so changes large ones. Digests of this
//! spelling are stored, so it never changes.

use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Compact JSON with the members of every object sorted by the bytes of their names. Numbers keep their spelling.
pub fn canonical(value: &Value) -> String {
    render(&Canonical(value))
}

/// The SHA-256 of bytes, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The SHA-256 of a value's canonical JSON. The text is made first: a hash function fed with a name here and a comma
/// there is slower than one fed at once.
pub fn canonical_sha256(value: &Value) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// The [`ops_hash`] of what is no patch: most changes are not.
const OPS_HASH_OF_NONE: &str = "3ca1106d6a2bcf8326666ddcf50e4a37613d52fb5ee7da84dc5a37e2060c4254";

/// What an audit record proves its operations and edits with: the digest of `{"edits":…,"ops":…}`.
pub fn ops_hash(ops: &[Value], edits: &[Value]) -> String {
    if ops.is_empty() && edits.is_empty() {
        return OPS_HASH_OF_NONE.to_owned();
    }
    let (edits, ops) = (render(&CanonicalItems(edits)), render(&CanonicalItems(ops)));
    sha256_hex(format!(r#"{{"edits":{edits},"ops":{ops}}}"#).as_bytes())
}

/// What tells a repeated request from another one that uses the same idempotency key.
pub fn fingerprint(method: &str, path: &str, body: &Value) -> String {
    sha256_hex(render(&(method, path, Canonical(body))).as_bytes())
}

#[allow(
    clippy::expect_used,
    reason = "texts, numbers and names that are texts can always be written to memory"
)]
fn render(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON values have a text")
}

struct Canonical<'a>(&'a Value);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(name, value)| (name, Canonical(value))).collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                serializer.collect_map(members)
            }
            Value::Array(items) => CanonicalItems(items).serialize(serializer),
            scalar => scalar.serialize(serializer),
        }
    }
}

struct CanonicalItems<'a>(&'a [Value]);

impl Serialize for CanonicalItems<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Canonical))
    }
}

#[cfg(test)]
mod tests;
