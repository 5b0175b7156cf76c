//! What searches look at: one row per entry, in the order in which an index in memory takes them in.

use super::{MemoryNo, ScopeNo, entries, pieces, segments};
use crate::vault::{self, seal_contexts};
use crate::{Lock, Row, StoreError, Tx, TxExt, Value};
use memtrove_core::Timestamp;
use memtrove_core::memories::decay::Fading;
use memtrove_core::memories::{AccessPolicy, Author, Embedding, Kind, Memory, MemoryId, State};
use memtrove_core::recall::terms::{EntryTerms, Terms};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The columns that [`rows`] reads.
macro_rules! columns {
    () => {
        "SELECT place, no, id, kind, state, policy, author_user, author_client, at, created_at, updated_at, expires_at, \
         anchor, relevance, fading, model, body FROM memory_index "
    };
}

/// A row of the index.
#[derive(Debug, Clone)]
pub struct Indexed {
    /// The entry.
    pub no: MemoryNo,
    /// The change it is indexed under.
    pub seq: i64,
    /// What of the entry decides whether it is found.
    pub head: IndexHead,
    /// What it means.
    pub embedding: Option<Embedding>,
    /// What it says.
    pub terms: EntryTerms,
}

/// What decides whether an entry is found, and breaks ties.
#[derive(Debug, Clone)]
pub struct IndexHead {
    /// The entry's id.
    pub id: MemoryId,
    pub kind: Kind,
    pub state: State,
    /// When it happened or was made.
    pub at: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// From then on it does not exist.
    pub expires_at: Option<Timestamp>,
    /// Since when it fades.
    pub anchor: Timestamp,
    /// How relevant it was then.
    pub relevance: f64,
    /// How fast it fades.
    pub fading: f64,
    /// Who may see it.
    pub policy: AccessPolicy,
    /// Who made it.
    pub author: Author,
    /// The caller's key for entries that contradict each other.
    pub conflict_key: Option<String>,
}

/// Writes an entry's row.
pub(super) fn put(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    seq: i64,
    no: MemoryNo,
    memory: &Memory,
    terms: &EntryTerms,
) -> Result<(), StoreError> {
    let place = scope.place(seq);
    let fading = Fading::of(memory);
    let body = encode(memory, terms);
    let body = vault::seal(tx, memory.scope.tenant(), &seal_contexts::memory_index(place), &body)?;
    tx.post(
        "INSERT INTO memory_index (place, scope_no, no, id, kind, state, policy, author_user, author_client, at, created_at, \
         updated_at, expires_at, anchor, relevance, fading, model, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        &[
            place.into(),
            scope.0.into(),
            no.0.into(),
            memory.id.0.into(),
            memory.kind.code().into(),
            memory.state.code().into(),
            memory.policy.policy.as_str().into(),
            memory.created_by.user.as_deref().into(),
            memory.created_by.client.as_deref().into(),
            memory.at().as_micros().into(),
            memory.created_at.as_micros().into(),
            memory.updated_at.as_micros().into(),
            memory.expires_at.map(Timestamp::as_micros).into(),
            memory.anchor.as_micros().into(),
            fading.initial.into(),
            fading.factor.into(),
            memory.embedding.as_ref().map(|embedding| &*embedding.model).into(),
            (*body).into(),
        ],
    )?;
    Ok(())
}

/// Takes an entry's row out.
pub(super) fn remove(tx: &mut dyn Tx, scope: ScopeNo, seq: i64) -> Result<(), StoreError> {
    tx.post("DELETE FROM memory_index WHERE place = $1", &[scope.place(seq).into()])?;
    Ok(())
}

/// Notes that an entry is gone, for indexes that still have it.
pub(super) fn note_gone(tx: &mut dyn Tx, scope: ScopeNo, seq: i64, no: MemoryNo) -> Result<(), StoreError> {
    tx.post("INSERT INTO memory_gone (place, no) VALUES ($1, $2)", &[scope.place(seq).into(), no.0.into()])?;
    segments::discard(tx, scope)
}

/// What changed in a scope after a change, in no particular order: `each` is given what an index is to take in.
pub fn changed(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    after: i64,
    each: &mut dyn FnMut(Indexed),
) -> Result<(), StoreError> {
    let mut after = after;
    loop {
        let (mut last, mut count) = (after, 0);
        step(tx, scope, after, STEP, &mut |indexed| {
            last = indexed.seq;
            count += 1;
            each(indexed);
        })?;
        if count < STEP {
            return Ok(());
        }
        after = last;
    }
}

/// The next rows of a scope after a change, in the order of changes.
pub(super) fn step(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    after: i64,
    limit: i64,
    each: &mut dyn FnMut(Indexed),
) -> Result<(), StoreError> {
    let (from, to) = (scope.place(after), ScopeNo(scope.0 + 1).place(0));
    let sql = concat!(columns!(), "WHERE place > $1 AND place < $2 ORDER BY place LIMIT $3");
    rows(tx, sql, &[from.into(), to.into(), limit.into()], each)
}

/// The rows of entries that are indexed under these changes, in no particular order; those that are not any more are left out.
pub fn at(tx: &mut dyn Tx, scope: ScopeNo, changes: &[i64]) -> Result<Vec<Indexed>, StoreError> {
    let seal_contexts: Vec<i64> = changes.iter().map(|seq| scope.place(*seq)).collect();
    let mut found = Vec::with_capacity(seal_contexts.len());
    let sql = concat!(columns!(), "WHERE place = ANY($1)");
    rows(tx, sql, &[Value::Ints(&seal_contexts)], &mut |indexed| found.push(indexed))?;
    Ok(found)
}

fn rows(
    tx: &mut dyn Tx,
    sql: &str,
    params: &[Value<'_>],
    each: &mut dyn FnMut(Indexed),
) -> Result<(), StoreError> {
    let plain = tx.vault().is_plain();
    let mut sealed = Vec::new();
    tx.query(sql, params, Lock::None, &mut |row| {
        let (place, head) = (row.int(0)?, head(row)?);
        let (no, model) = (MemoryNo(row.int(1)?), row.opt_text(15)?);
        if plain {
            each(indexed(place, no, head, model, row.bytes(16)?)?);
        } else {
            sealed.push((place, no, head, model.map(str::to_owned), row.bytes(16)?.to_vec()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (place, no, head, model, body) in sealed {
        let body = vault::open(tx, &seal_contexts::memory_index(place), body)?;
        each(indexed(place, no, head, model.as_deref(), &body)?);
    }
    Ok(())
}

/// Rows that are read at a time.
const STEP: i64 = 1_000;

/// What went from a scope after a change.
pub fn gone(tx: &mut dyn Tx, scope: ScopeNo, after: i64) -> Result<Vec<MemoryNo>, StoreError> {
    let (from, to) = (scope.place(after), ScopeNo(scope.0 + 1).place(0));
    tx.rows("SELECT no FROM memory_gone WHERE place > $1 AND place < $2", &[from.into(), to.into()], |row| {
        row.int(0).map(MemoryNo)
    })
}

/// Forgets some of what went, as long as more than `kept` notes are left; indexes that are further behind are made anew.
pub fn trim_gone(tx: &mut dyn Tx, kept: i64, limit: i64) -> Result<u64, StoreError> {
    let count = tx.first("SELECT COUNT(*) FROM memory_gone", &[], |row| row.int(0))?.unwrap_or_default();
    let oldest = tx.rows(
        "SELECT place FROM memory_gone ORDER BY place LIMIT $1",
        &[(count - kept).clamp(0, limit).into()],
        |row| row.int(0),
    )?;
    for place in &oldest {
        tx.post(
            "UPDATE memory_scopes SET gone_seq = $2 WHERE id = $1 AND gone_seq < $2",
            &[ScopeNo::of(*place).0.into(), ScopeNo::seq(*place).into()],
        )?;
        tx.post("DELETE FROM memory_gone WHERE place = $1", &[(*place).into()])?;
    }
    Ok(oldest.len() as u64)
}

/// The vector of an entry that is indexed under a change.
pub fn embedding(tx: &mut dyn Tx, scope: ScopeNo, seq: i64) -> Result<Option<Embedding>, StoreError> {
    let place = scope.place(seq);
    Ok(embeddings(tx, &[place])?.remove(&place))
}

/// The vectors of entries, by their [seal_contexts](ScopeNo::place); those that have none are left out.
pub fn embeddings(tx: &mut dyn Tx, at: &[i64]) -> Result<HashMap<i64, Embedding>, StoreError> {
    let found = tx.rows(
        "SELECT place, model, body FROM memory_index WHERE place = ANY($1) AND model IS NOT NULL",
        &[Value::Ints(at)],
        |row| Ok((row.int(0)?, row.text(1)?.to_owned(), row.bytes(2)?.to_vec())),
    )?;
    let opened = found.into_iter().map(|(place, model, body)| {
        let body = vault::open(tx, &seal_contexts::memory_index(place), body)?;
        let embedding = Body::read(&body).and_then(|body| body.embedding(&model)).ok_or_else(broken)?;
        Ok((place, embedding))
    });
    opened.collect()
}

/// The terms of an entry that is indexed under a change.
pub fn terms(tx: &mut dyn Tx, scope: ScopeNo, seq: i64) -> Result<EntryTerms, StoreError> {
    let place = scope.place(seq);
    let found = tx.first("SELECT body FROM memory_index WHERE place = $1", &[place.into()], |row| {
        Ok(row.bytes(0)?.to_vec())
    })?;
    let Some(body) = found else { return Ok(EntryTerms::default()) };
    let body = vault::open(tx, &seal_contexts::memory_index(place), body)?;
    Body::read(&body).and_then(|body| body.terms()).ok_or_else(broken)
}

fn head(row: &dyn Row) -> Result<IndexHead, StoreError> {
    let at = |column| Ok::<_, StoreError>(Timestamp::from_micros(row.int(column)?));
    Ok(IndexHead {
        id: MemoryId(row.uuid(2)?),
        kind: entries::kind(row.int(3)?)?,
        state: State::from_code(row.int(4)?).ok_or_else(broken)?,
        policy: AccessPolicy::new(entries::policy(row.text(5)?)?),
        author: Author {
            user: row.opt_text(6)?.map(str::to_owned),
            client: row.opt_text(7)?.map(str::to_owned),
        },
        at: at(8)?,
        created_at: at(9)?,
        updated_at: at(10)?,
        expires_at: row.opt_int(11)?.map(Timestamp::from_micros),
        anchor: at(12)?,
        relevance: row.real(13)?,
        fading: row.real(14)?,
        conflict_key: None,
    })
}

fn indexed(
    place: i64,
    no: MemoryNo,
    mut head: IndexHead,
    model: Option<&str>,
    body: &[u8],
) -> Result<Indexed, StoreError> {
    let body = Body::read(body).ok_or_else(broken)?;
    head.policy.approved_users = body.texts(body.approved_users).ok_or_else(broken)?;
    head.policy.allowed_teams = body.texts(body.allowed_teams).ok_or_else(broken)?;
    head.conflict_key = body.conflict_key().ok_or_else(broken)?;
    let embedding = model.map(|model| body.embedding(model).ok_or_else(broken)).transpose()?;
    let terms = body.terms().ok_or_else(broken)?;
    Ok(Indexed { no, seq: ScopeNo::seq(place), head, embedding, terms })
}

fn broken() -> StoreError {
    StoreError::Broken("a row of the memory index cannot be read".into())
}

/// A row's bytes: a zero (sealed bytes never begin so), then the parts, each with its length before it.
struct Body<'a> {
    vector: &'a [u8],
    terms: &'a [u8],
    approved_users: &'a [u8],
    allowed_teams: &'a [u8],
    conflict_key: &'a [u8],
    /// Of a long entry: see [`pieces::encode`]. Rows that an older version wrote end before it.
    pieces: &'a [u8],
}

/// A term's bytes: its digest and its frequency.
const TERM_BYTES: usize = 9;

fn encode(memory: &Memory, terms: &EntryTerms) -> Vec<u8> {
    let vector = memory.embedding.as_ref().map_or(&[][..], |embedding| &embedding.vector);
    let mut bytes = Vec::with_capacity(32 + vector.len() * 4 + terms.whole.counts.len() * TERM_BYTES);
    bytes.push(0);
    let mut part = |length: usize, write: &mut dyn FnMut(&mut Vec<u8>)| {
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        write(&mut bytes);
    };
    part(vector.len() * 4, &mut |bytes| {
        vector.iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()))
    });
    part(4 + terms.whole.counts.len() * TERM_BYTES, &mut |bytes| {
        bytes.extend_from_slice(&terms.whole.length.to_le_bytes());
        for (term, frequency) in &terms.whole.counts {
            bytes.extend_from_slice(&term.to_le_bytes());
            bytes.push((*frequency).min(u32::from(u8::MAX)) as u8);
        }
    });
    for list in [&memory.policy.approved_users, &memory.policy.allowed_teams] {
        let text =
            if list.is_empty() { String::new() } else { serde_json::to_string(list).unwrap_or_default() };
        part(text.len(), &mut |bytes| bytes.extend_from_slice(text.as_bytes()));
    }
    let key = memory.conflict_key().unwrap_or_default();
    part(key.len(), &mut |bytes| bytes.extend_from_slice(key.as_bytes()));
    if !terms.pieces.is_empty() {
        let vectors = memory.embedding.as_ref().map_or(&[][..], |embedding| &embedding.pieces);
        let pieces = pieces::encode(vectors, terms);
        part(pieces.len(), &mut |bytes| bytes.extend_from_slice(&pieces));
    }
    bytes
}

impl<'a> Body<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[0])?;
        let mut part = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (part, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(part)
        };
        Some(Self {
            vector: part()?,
            terms: part()?,
            approved_users: part()?,
            allowed_teams: part()?,
            conflict_key: part()?,
            pieces: part().unwrap_or_default(),
        })
    }

    fn embedding(&self, model: &str) -> Option<Embedding> {
        let (floats, _) = self.vector.as_chunks::<4>();
        let vector = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let pieces = pieces::decode(self.pieces, &Terms::default())?;
        let pieces = pieces.into_iter().filter_map(|piece| piece.vector).collect();
        Some(Embedding { model: Arc::from(model), vector, pieces })
    }

    fn terms(&self) -> Option<EntryTerms> {
        let whole = self.whole_terms();
        let pieces = pieces::decode(self.pieces, &whole)?.into_iter().map(|piece| piece.terms).collect();
        Some(EntryTerms { whole, pieces })
    }

    fn whole_terms(&self) -> Terms {
        let Some((length, terms)) = self.terms.split_first_chunk::<4>() else { return Terms::default() };
        let (terms, _) = terms.as_chunks::<TERM_BYTES>();
        let term = |bytes: &[u8; TERM_BYTES]| {
            let (digest, frequency) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*digest), u32::from(*frequency.first()?)))
        };
        Terms { counts: terms.iter().filter_map(term).collect(), length: u32::from_le_bytes(*length) }
    }

    fn texts(&self, part: &[u8]) -> Option<Vec<String>> {
        if part.is_empty() { Some(Vec::new()) } else { serde_json::from_slice(part).ok() }
    }

    fn conflict_key(&self) -> Option<Option<String>> {
        let key = std::str::from_utf8(self.conflict_key).ok()?;
        Some((!key.is_empty()).then(|| key.to_owned()))
    }
}
