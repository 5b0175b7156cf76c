//! Cursors: where a page ended, sealed so that a cursor works for the query it came from and for no other.

use super::limits::MAX_CURSOR_LENGTH;
use super::{Code, Identifiers, Memory, MemoryId, ScopeKey};
use crate::files::canonical::canonical;
use crate::{Error, Result, Timestamp};
use serde_json::{Value, json};
use std::cmp::Ordering;
use uuid::Uuid;

/// What a cursor is sealed with; kept with the data, so that cursors survive a restart.
pub type CursorKey = [u8; 32];

/// A digest of everything that decides what a list holds and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The digest of scopes (and with them the tenant), all identifiers given, and the rest of a query.
    pub(super) fn of<'a>(
        scopes: impl IntoIterator<Item = &'a ScopeKey>,
        identifiers: &Identifiers,
        query: &Value,
    ) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(|scope| format!("{:?}", scope.hash())).collect();
        let given: Vec<(&str, &str)> =
            identifiers.given().map(|(identifier, value)| (identifier.as_str(), value)).collect();
        Self(*blake3::hash(canonical(&json!([scopes, given, query])).as_bytes()).as_bytes())
    }
}

/// A place in a list: newest first, then by id from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// [`Memory::at`]
    pub at: Timestamp,
    /// The entry.
    pub id: MemoryId,
}

impl Position {
    /// The place of an entry.
    pub fn of(memory: &Memory) -> Self {
        Self { at: memory.at(), id: memory.id }
    }

    /// Which of two comes first in a list.
    pub fn compare(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at).then_with(|| other.id.cmp(&self.id))
    }

    /// The cursor for what follows.
    pub fn encode(&self, fingerprint: Fingerprint, key: &CursorKey) -> String {
        let mut place = [0; 24];
        place[..8].copy_from_slice(&self.at.as_micros().to_be_bytes());
        place[8..].copy_from_slice(self.id.0.as_bytes());
        seal(b'l', &place, fingerprint, key)
    }

    /// Reads a cursor that [`Position::encode`] made for the same query.
    pub fn decode(text: &str, fingerprint: Fingerprint, key: &CursorKey) -> Result<Self> {
        let place: [u8; 24] = open(b'l', text, fingerprint, key)?;
        let (at, id) = (part(&place, 0), part(&place, 8));
        Ok(Self { at: Timestamp::from_micros(i64::from_be_bytes(at)), id: MemoryId(Uuid::from_bytes(id)) })
    }
}

/// A place in a list of facts: by layer, then surest, then newest, then by id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FactPosition {
    /// [`super::Layer::precedence`]
    pub precedence: u8,
    /// How sure the fact is.
    pub confidence: f64,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The entry.
    pub id: MemoryId,
}

impl FactPosition {
    /// The place of a fact.
    pub fn of(memory: &Memory) -> Self {
        Self {
            precedence: memory.scope.layer().precedence(),
            confidence: memory.fact.as_ref().map_or(0.0, |fact| fact.confidence),
            updated_at: memory.updated_at,
            id: memory.id,
        }
    }

    /// Which of two comes first in a list.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.precedence
            .cmp(&other.precedence)
            .then_with(|| other.confidence.total_cmp(&self.confidence))
            .then_with(|| other.updated_at.cmp(&self.updated_at))
            .then_with(|| self.id.cmp(&other.id))
    }

    /// The cursor for what follows.
    pub fn encode(&self, fingerprint: Fingerprint, key: &CursorKey) -> String {
        let mut place = [0; 33];
        place[0] = self.precedence;
        place[1..9].copy_from_slice(&self.confidence.to_be_bytes());
        place[9..17].copy_from_slice(&self.updated_at.as_micros().to_be_bytes());
        place[17..].copy_from_slice(self.id.0.as_bytes());
        seal(b'f', &place, fingerprint, key)
    }

    /// Reads a cursor that [`FactPosition::encode`] made for the same query.
    pub fn decode(text: &str, fingerprint: Fingerprint, key: &CursorKey) -> Result<Self> {
        let place: [u8; 33] = open(b'f', text, fingerprint, key)?;
        Ok(Self {
            precedence: place[0],
            confidence: f64::from_be_bytes(part(&place, 1)),
            updated_at: Timestamp::from_micros(i64::from_be_bytes(part(&place, 9))),
            id: MemoryId(Uuid::from_bytes(part(&place, 17))),
        })
    }
}

/// A place and what proves that it was made here for this query, as text. The query itself needs not be in it: it comes
/// with the request, and the proof fits no other.
fn seal(list: u8, place: &[u8], fingerprint: Fingerprint, key: &CursorKey) -> String {
    format!("{}{}", hex::encode(place), proof(list, place, fingerprint, key).to_hex())
}

fn open<const N: usize>(list: u8, text: &str, fingerprint: Fingerprint, key: &CursorKey) -> Result<[u8; N]> {
    let mut place = [0; N];
    // The text of a place and its proof is made anew and compared, so that no other spelling of it passes.
    let known = text.len() <= MAX_CURSOR_LENGTH
        && text.get(..2 * N).is_some_and(|digits| hex::decode_to_slice(digits, &mut place).is_ok())
        && blake3::hash(seal(list, &place, fingerprint, key).as_bytes()) == blake3::hash(text.as_bytes());
    if known { Ok(place) } else { Err(invalid()) }
}

fn proof(list: u8, place: &[u8], fingerprint: Fingerprint, key: &CursorKey) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&[list]).update(&fingerprint.0).update(place);
    hasher.finalize()
}

/// Some bytes of a place, whose lengths are all known here.
fn part<const N: usize>(place: &[u8], from: usize) -> [u8; N] {
    std::array::from_fn(|index| place[from + index])
}

fn invalid() -> Error {
    let message = "the cursor is not one of this list; begin again without one";
    Error::new(Code::InvalidCursor, message)
}

#[cfg(test)]
mod tests;
