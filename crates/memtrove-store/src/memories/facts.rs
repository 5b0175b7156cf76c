//! Facts by what they state. Only digests are kept, since what a fact says may be sealed.

use super::{MemoryNo, ScopeNo};
use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::memories::{AccessPolicy, Author, Fact, Kind, Memory, Policy, ScopeKey};

/// What a fact is looked up by: the four parts, each of them optional.
#[derive(Debug, Clone, Default)]
pub struct FactPattern<'a> {
    /// `factType`
    pub fact_type: Option<&'a str>,
    /// `subject`
    pub subject: Option<&'a str>,
    /// `predicate`
    pub predicate: Option<&'a str>,
    /// `object`
    pub object: Option<&'a str>,
    /// At least so sure.
    pub min_confidence: f64,
}

fn digest(part: &str) -> [u8; 16] {
    shortened(blake3::hash(part.as_bytes()))
}

/// What a scope may hold once: a statement or, of those that others may not see, a statement and whose it is. What somebody
/// hides is in no one's way.
fn statement(fact: &Fact, hidden_by: Option<&str>) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    let parts = [&fact.fact_type, &fact.subject, &fact.predicate, &fact.object];
    for part in parts.into_iter().map(String::as_str).chain(hidden_by) {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    shortened(hasher.finalize())
}

/// Who hides an entry from others with its scope, if somebody does.
pub fn hidden_by<'a>(scope: &ScopeKey, policy: &AccessPolicy, author: &'a Author) -> Option<&'a str> {
    let hidden =
        matches!(policy.policy, Policy::Private | Policy::Restricted) && !scope.layer().is_personal();
    author.user.as_deref().or(author.client.as_deref()).filter(|_| hidden)
}

fn shortened(hash: blake3::Hash) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_bytes()[..16]);
    short
}

/// Makes an entry found by what it states, if it states something and is not put away.
pub(super) fn put(tx: &mut dyn Tx, scope: ScopeNo, no: MemoryNo, memory: &Memory) -> Result<(), StoreError> {
    let Some(fact) = &memory.fact else { return Ok(()) };
    if memory.kind != Kind::Procedural {
        tx.post("DELETE FROM memory_facts WHERE no = $1", &[no.0.into()])?;
        return Ok(());
    }
    let hidden_by = hidden_by(&memory.scope, &memory.policy, &memory.created_by);
    let mut once = statement(fact, hidden_by);
    // An entry that loses its maker's name may come to say what another one says: both stay.
    if stating(tx, scope, fact, hidden_by)?.is_some_and(|other| other != no) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&once).update(&no.0.to_be_bytes());
        once = shortened(hasher.finalize());
    }
    tx.post(
        "INSERT INTO memory_facts (no, scope_no, statement, fact_type, subject, predicate, object, confidence) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (no) DO UPDATE SET statement = excluded.statement, \
         fact_type = excluded.fact_type, subject = excluded.subject, predicate = excluded.predicate, \
         object = excluded.object, confidence = excluded.confidence",
        &[
            no.0.into(),
            scope.0.into(),
            once.as_slice().into(),
            digest(&fact.fact_type).as_slice().into(),
            digest(&fact.subject).as_slice().into(),
            digest(&fact.predicate).as_slice().into(),
            digest(&fact.object).as_slice().into(),
            fact.confidence.into(),
        ],
    )?;
    Ok(())
}

/// The entry of a scope that states exactly this: openly, or hidden by somebody.
pub fn stating(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    fact: &Fact,
    hidden_by: Option<&str>,
) -> Result<Option<MemoryNo>, StoreError> {
    tx.first(
        "SELECT no FROM memory_facts WHERE scope_no = $1 AND statement = $2",
        &[scope.0.into(), statement(fact, hidden_by).as_slice().into()],
        |row| row.int(0).map(MemoryNo),
    )
}

/// The entries of a scope that state what is wanted.
pub fn find(tx: &mut dyn Tx, scope: ScopeNo, wanted: &FactPattern<'_>) -> Result<Vec<MemoryNo>, StoreError> {
    let mut sql = String::from("SELECT no FROM memory_facts WHERE scope_no = $1 AND confidence >= $2");
    let parts = [
        ("fact_type", wanted.fact_type),
        ("subject", wanted.subject),
        ("predicate", wanted.predicate),
        ("object", wanted.object),
    ];
    let digests: Vec<(&str, [u8; 16])> =
        parts.into_iter().filter_map(|(column, part)| Some((column, digest(part?)))).collect();
    let mut params: Vec<Value<'_>> = vec![scope.0.into(), wanted.min_confidence.into()];
    for (column, digest) in &digests {
        params.push(digest.as_slice().into());
        sql.push_str(&format!(" AND {column} = ${}", params.len()));
    }
    tx.rows(&sql, &params, |row| row.int(0).map(MemoryNo))
}
