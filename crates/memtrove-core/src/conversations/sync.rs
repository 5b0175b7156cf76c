//! How an agent's complete memory is compared with what is stored, without reading what is stored.
//!
//! Every memory row carries the number of items of its epoch so far and a digest chained over them. A sync hashes what
//! it was given and looks at one row: same digest at the same length is "nothing new", same digest at a shorter length is
//! "append the rest", anything else begins a new epoch.

use crate::{Error, Result};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::Write as _;

/// A keyed digest. The key keeps it from telling anything about the content.
pub type Digest = [u8; 32];

/// What the newest memory row of a client says about its epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryState {
    /// The epoch's number.
    pub epoch: i64,
    /// The `ord` of its first entry.
    pub epoch_start: i64,
    /// How many items it holds.
    pub item_count: usize,
    /// The digest chained over them.
    pub chain: Digest,
    /// The content type of all its entries, if they share one.
    pub uniform_type: Option<String>,
    /// The digest of the sync request that led to this state.
    pub request: Option<Digest>,
}

/// What a sync has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncDecision {
    /// The memory is already there.
    NoOp,
    /// Store the items from this index on, in the current epoch.
    Append {
        /// How many leading items are stored already.
        stored: usize,
    },
    /// Store everything in a new epoch.
    NewEpoch,
}

/// Hashes content with this store's key.
#[derive(Clone)]
pub struct Digester {
    key: [u8; 32],
}

impl Digester {
    /// A digester with the store's key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The digest of a request by a user: equal bytes by the same user mean an equal request.
    pub fn request(&self, user: &str, body: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(user.len() as u64).to_le_bytes());
        hasher.update(user.as_bytes());
        hasher.update(body);
        *hasher.finalize().as_bytes()
    }

    /// The digest of each item's value: equal for equal JSON values, however they are written.
    pub fn items(&self, items: &[&RawValue]) -> Result<Vec<Digest>> {
        let mut canonical = Vec::new();
        items
            .iter()
            .map(|item| {
                let value: Value = serde_json::from_str(item.get())
                    .map_err(|e| Error::invalid("content", format!("is not valid JSON: {e}")))?;
                canonical.clear();
                write_canonical(&value, &mut canonical);
                Ok(*blake3::keyed_hash(&self.key, &canonical).as_bytes())
            })
            .collect()
    }

    /// The chain after each prefix of `items`, beginning with the one over no items, continued from `start`.
    pub fn chain(&self, start: Digest, items: &[Digest]) -> Vec<Digest> {
        let mut chain = Vec::with_capacity(items.len() + 1);
        chain.push(start);
        let mut last = start;
        for item in items {
            let mut link = [0u8; 64];
            link[..32].copy_from_slice(&last);
            link[32..].copy_from_slice(item);
            last = *blake3::keyed_hash(&self.key, &link).as_bytes();
            chain.push(last);
        }
        chain
    }
}

/// The chain over no items.
pub const EMPTY_CHAIN: Digest = [0; 32];

/// Compares a complete memory, given as its chain from [`EMPTY_CHAIN`], with the stored state.
pub fn decide(state: Option<&MemoryState>, content_type: &str, chain: &[Digest]) -> SyncDecision {
    let incoming = chain.len() - 1;
    let Some(state) = state else {
        return if incoming == 0 { SyncDecision::NoOp } else { SyncDecision::Append { stored: 0 } };
    };
    if state.uniform_type.as_deref() != Some(content_type) {
        return SyncDecision::NewEpoch;
    }
    if state.item_count > incoming || chain[state.item_count] != state.chain {
        return SyncDecision::NewEpoch;
    }
    if state.item_count == incoming {
        SyncDecision::NoOp
    } else {
        SyncDecision::Append { stored: state.item_count }
    }
}

/// Writes a value so that equal values give equal bytes: members sorted, numbers by value.
fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number.as_str(), out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_canonical(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push(b'{');
            for (name, value) in members {
                write_text(name, out);
                write_canonical(value, out);
                out.push(b',');
            }
            out.push(b'}');
        }
    }
}

/// Length first, so that no text can look like structure.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A number as sign, digits without leading or trailing zeros, and power of ten: `1`, `1.0` and `10e-1` are one number.
fn write_number(text: &str, out: &mut Vec<u8>) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let trimmed = digits.trim_end_matches('0');
    out.push(b'#');
    if trimmed.is_empty() {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(trimmed.as_bytes());
    out.push(b'e');
    let shift = (digits.len() - trimmed.len()) as i128 - fraction.len() as i128;
    match exponent.parse::<i128>().ok().and_then(|e| e.checked_add(shift)) {
        // Writing to a Vec cannot fail.
        Some(power) => drop(write!(out, "{power}")),
        // An exponent of forty digits: no two spellings of such a number are worth telling equal.
        None => drop(write!(out, "{exponent}/{shift}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn canonical(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write_canonical(&serde_json::from_str(text).unwrap(), &mut out);
        out
    }

    #[test]
    fn equal_values_are_equal_however_written() {
        for (a, b) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("100", "1E2"),
            ("0.10", "1e-1"),
            ("-0", "0"),
            ("0e5", "0.000"),
            ("9007199254740993", "9007199254740993.0"),
            (r#"{"a":1,"b":[2]}"#, r#"{ "b": [2.0], "a": 1 }"#),
            (r#""é""#, r#""\u00e9""#),
        ] {
            assert_eq!(canonical(a), canonical(b), "{a} {b}");
        }
    }

    #[test]
    fn different_values_are_different() {
        for (a, b) in [
            ("9007199254740993", "9007199254740992"),
            ("1", "\"1\""),
            ("1", "-1"),
            (r#"{"a":null}"#, "{}"),
            ("[[1],2]", "[[1,2]]"),
            ("[\"a\",\"b\"]", "[\"a,b\"]"),
            ("1e400", "1e401"),
            ("null", "false"),
        ] {
            assert_ne!(canonical(a), canonical(b), "{a} {b}");
        }
    }

    /// The algorithm of the contract on whole values, to hold the digests against.
    fn naive(stored: &[(String, Vec<Value>)], content_type: &str, incoming: &[Value]) -> SyncDecision {
        let flat: Vec<&Value> = stored.iter().flat_map(|(_, items)| items).collect();
        let incoming: Vec<&Value> = incoming.iter().collect();
        if !stored.is_empty() && stored.iter().any(|(t, _)| t != content_type) {
            SyncDecision::NewEpoch
        } else if flat == incoming {
            SyncDecision::NoOp
        } else if incoming.starts_with(&flat) {
            SyncDecision::Append { stored: flat.len() }
        } else {
            SyncDecision::NewEpoch
        }
    }

    fn raw(items: &[Value]) -> Vec<Box<RawValue>> {
        items.iter().map(|i| serde_json::value::to_raw_value(i).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn the_digest_decides_as_the_values_do(
            epoch in prop::collection::vec((prop_oneof![9 => Just("T"), 1 => Just("U")], prop::collection::vec(0u8..3, 0..4)), 0..5),
            incoming in prop::collection::vec(0u8..3, 0..10),
            follow in any::<bool>(),
        ) {
            let digester = Digester::new([7; 32]);
            let value = |n: &u8| json!({ "n": n });
            let stored: Vec<(String, Vec<Value>)> =
                epoch.iter().map(|(t, items)| (t.to_string(), items.iter().map(value).collect())).collect();
            let mut incoming: Vec<Value> = incoming.iter().map(value).collect();
            if follow {
                let mut same: Vec<Value> = stored.iter().flat_map(|(_, items)| items.clone()).collect();
                same.append(&mut incoming);
                incoming = same;
            }
            let mut state: Option<MemoryState> = None;
            for (content_type, items) in &stored {
                let raw = raw(items);
                let digests = digester.items(&raw.iter().map(|r| &**r).collect::<Vec<_>>()).unwrap();
                let start = state.as_ref().map_or(EMPTY_CHAIN, |s| s.chain);
                let chain = *digester.chain(start, &digests).last().unwrap();
                state = Some(match state {
                    None => MemoryState { epoch: 1, epoch_start: 0, item_count: items.len(), chain,
                        uniform_type: Some(content_type.clone()), request: None },
                    Some(s) => MemoryState { item_count: s.item_count + items.len(), chain,
                        uniform_type: s.uniform_type.filter(|t| t == content_type), ..s },
                });
            }
            let raw = raw(&incoming);
            let digests = digester.items(&raw.iter().map(|r| &**r).collect::<Vec<_>>()).unwrap();
            let chain = digester.chain(EMPTY_CHAIN, &digests);
            prop_assert_eq!(decide(state.as_ref(), "T", &chain), naive(&stored, "T", &incoming));
        }
    }
}
