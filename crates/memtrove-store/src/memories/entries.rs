//! Entries as they are read: by id, by number, by time.

use super::scopes::{key, scope_columns};
use super::{MemoryNo, ScopeNo, index};
use crate::vault::{self, seal_contexts};
use crate::{Lock, Row, StoreError, Tx, TxExt, Value};
use memtrove_core::files::body;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{AccessPolicy, Author, Fact, Kind, Lineage, Memory, MemoryId, Policy, State};
use memtrove_core::{Timestamp, parse_uuid};
use serde_json::{Map, Value as Json, json};
use std::ops::ControlFlow;
use uuid::Uuid;

/// An entry with the number of its row and the change it is indexed under.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The row's number.
    pub no: MemoryNo,
    /// The scope's number.
    pub scope_no: ScopeNo,
    /// Its place in the index.
    pub seq: i64,
    /// The entry; its embedding only where it was asked for.
    pub memory: Memory,
}

/// The columns that [`stored`] reads.
macro_rules! columns {
    () => {
        concat!(
            "m.no, m.id, m.scope_no, m.seq, m.kind, m.origin_kind, m.state, m.version, m.created_at, m.updated_at, \
             m.occurred_at, m.expires_at, m.ttl_seconds, m.anchor, m.author_user, m.author_client, m.policy, m.content, \
             m.rest, u.uses, u.used_at, ",
            scope_columns!(),
            " FROM memories m JOIN memory_scopes s ON s.id = m.scope_no LEFT JOIN memory_uses u ON u.no = m.no "
        )
    };
}

pub(super) use columns;

pub(super) fn stored(
    row: &dyn Row,
) -> Result<impl FnOnce(&mut dyn Tx) -> Result<Stored, StoreError> + use<>, StoreError> {
    let at = |column| Ok::<_, StoreError>(Timestamp::from_micros(row.int(column)?));
    let maybe_at = |column| Ok::<_, StoreError>(row.opt_int(column)?.map(Timestamp::from_micros));
    let no = MemoryNo(row.int(0)?);
    let (content, rest) = (row.bytes(17)?.to_vec(), row.bytes(18)?.to_vec());
    let memory = Memory {
        id: MemoryId(row.uuid(1)?),
        scope: key(row, 21)?,
        kind: kind(row.int(4)?)?,
        origin_kind: row.opt_int(5)?.map(kind).transpose()?,
        content: String::new(),
        metadata: Map::new(),
        state: State::from_code(row.int(6)?).ok_or_else(|| broken("state"))?,
        policy: AccessPolicy::new(policy(row.text(16)?)?),
        created_by: Author {
            user: row.opt_text(14)?.map(str::to_owned),
            client: row.opt_text(15)?.map(str::to_owned),
        },
        created_at: at(8)?,
        updated_at: at(9)?,
        occurred_at: maybe_at(10)?,
        expires_at: maybe_at(11)?,
        ttl_seconds: row.opt_int(12)?,
        version: row.int(7)?,
        anchor: at(13)?,
        fact: None,
        lineage: Lineage::default(),
        access_count: row.opt_int(19)?.unwrap_or_default(),
        last_accessed_at: maybe_at(20)?,
        embedding: None,
    };
    let stored = Stored { no, scope_no: ScopeNo(row.int(2)?), seq: row.int(3)?, memory };
    Ok(move |tx: &mut dyn Tx| {
        let mut stored = stored;
        let id = stored.memory.id.0;
        stored.memory.content = vault::open_text(tx, &seal_contexts::memory_content(id), content)?;
        let rest = vault::open(tx, &seal_contexts::memory_rest(id), rest)?;
        read_rest(&rest, &mut stored.memory).ok_or_else(|| broken("rest"))?;
        Ok(stored)
    })
}

fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("a memory's {what} cannot be read"))
}

pub(super) fn kind(code: i64) -> Result<Kind, StoreError> {
    Kind::from_code(code).ok_or_else(|| broken("kind"))
}

pub(super) fn policy(word: &str) -> Result<Policy, StoreError> {
    Policy::parse(word).ok_or_else(|| broken("policy"))
}

/// What of an entry is kept as one JSON text.
pub(super) fn rest(memory: &Memory) -> String {
    let mut rest = Map::new();
    let mut put = |name: &str, value: Json| {
        rest.insert(name.to_owned(), value);
    };
    if !memory.metadata.is_empty() {
        put("metadata", Json::Object(memory.metadata.clone()));
    }
    if !memory.policy.approved_users.is_empty() {
        put("approvedUsers", json!(memory.policy.approved_users));
    }
    if !memory.policy.allowed_teams.is_empty() {
        put("allowedTeams", json!(memory.policy.allowed_teams));
    }
    if let Some(fact) = &memory.fact {
        let Fact { fact_type, subject, predicate, object, confidence } = fact;
        put("fact", json!([fact_type, subject, predicate, object, confidence]));
    }
    let Lineage { promoted_from, promoted_to, consolidated_from, superseded_by, mirror_of, passed_over } =
        &memory.lineage;
    for (name, id) in [("from", promoted_from), ("to", promoted_to), ("by", superseded_by)] {
        if let Some(id) = id {
            put(name, json!(id.to_string()));
        }
    }
    if !consolidated_from.is_empty() {
        put("of", consolidated_from.iter().map(ToString::to_string).collect());
    }
    if let Some(event) = mirror_of {
        put("mirrorOf", json!(event));
    }
    if let Some(version) = passed_over {
        put("passedOver", json!(version));
    }
    Json::Object(rest).to_string()
}

fn read_rest(text: &[u8], memory: &mut Memory) -> Option<()> {
    if text == b"{}" {
        return Some(());
    }
    // Not with serde_json alone: it would spell numbers anew.
    let Json::Object(mut rest) = body::parse(text).ok()? else { return None };
    if let Some(Json::Object(metadata)) = rest.remove("metadata") {
        memory.metadata = metadata;
    }
    let id = |value: &Json| value.as_str().and_then(parse_uuid).map(MemoryId);
    for (name, value) in &rest {
        match name.as_str() {
            "approvedUsers" => memory.policy.approved_users = names(value)?,
            "allowedTeams" => memory.policy.allowed_teams = names(value)?,
            "fact" => memory.fact = Some(fact(value)?),
            "from" => memory.lineage.promoted_from = Some(id(value)?),
            "to" => memory.lineage.promoted_to = Some(id(value)?),
            "by" => memory.lineage.superseded_by = Some(id(value)?),
            "of" => {
                memory.lineage.consolidated_from = value.as_array()?.iter().map(id).collect::<Option<_>>()?
            }
            "mirrorOf" => memory.lineage.mirror_of = Some(value.as_str()?.to_owned()),
            "passedOver" => memory.lineage.passed_over = Some(value.as_i64()?),
            _ => return None,
        }
    }
    Some(())
}

fn names(value: &Json) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

/// Who may see an entry, as it is stored.
pub(super) struct SealedPolicy {
    policy: Policy,
    rest: Vec<u8>,
}

impl SealedPolicy {
    /// Reads two columns, from this one on: the policy's word, and the rest.
    pub(super) fn read(row: &dyn Row, first: usize) -> Result<Self, StoreError> {
        Ok(Self { policy: policy(row.text(first)?)?, rest: row.bytes(first + 1)?.to_vec() })
    }

    /// Who may see the entry with this id.
    pub(super) fn open(self, tx: &mut dyn Tx, id: Uuid) -> Result<AccessPolicy, StoreError> {
        let rest = vault::open(tx, &seal_contexts::memory_rest(id), self.rest)?;
        let rest = body::parse(&rest).map_err(|_| broken("rest"))?;
        let named = |name: &str| match rest.get(name) {
            Some(value) => names(value).ok_or_else(|| broken("rest")),
            None => Ok(Vec::new()),
        };
        Ok(AccessPolicy {
            policy: self.policy,
            approved_users: named("approvedUsers")?,
            allowed_teams: named("allowedTeams")?,
        })
    }
}

fn fact(value: &Json) -> Option<Fact> {
    let [fact_type, subject, predicate, object, confidence] = value.as_array()?.as_slice() else {
        return None;
    };
    let text = |value: &Json| value.as_str().map(str::to_owned);
    Some(Fact {
        fact_type: text(fact_type)?,
        subject: text(subject)?,
        predicate: text(predicate)?,
        object: text(object)?,
        confidence: confidence.as_f64()?,
    })
}

/// An entry of a tenant by its id, expired or not; with its embedding.
pub fn get(tx: &mut dyn Tx, tenant: &Tenant, id: MemoryId) -> Result<Option<Stored>, StoreError> {
    let found = tx.first(
        concat!("SELECT ", columns!(), "WHERE m.id = $1 AND s.tenant = $2"),
        &[id.0.into(), tenant.as_str().into()],
        stored,
    )?;
    let Some(open) = found else { return Ok(None) };
    let stored = open(tx)?;
    Ok(Some(with_embedding(tx, stored)?))
}

/// The version of an entry of a tenant.
pub fn version(tx: &mut dyn Tx, tenant: &Tenant, id: MemoryId) -> Result<Option<i64>, StoreError> {
    tx.first(
        "SELECT m.version FROM memories m JOIN memory_scopes s ON s.id = m.scope_no WHERE m.id = $1 AND s.tenant = $2",
        &[id.0.into(), tenant.as_str().into()],
        |row| row.int(0),
    )
}

/// Adds the embedding.
pub fn with_embedding(tx: &mut dyn Tx, mut stored: Stored) -> Result<Stored, StoreError> {
    stored.memory.embedding = index::embedding(tx, stored.scope_no, stored.seq)?;
    Ok(stored)
}

/// Gives each of these its vector.
pub fn add_embeddings(tx: &mut dyn Tx, stored: &mut [Stored]) -> Result<(), StoreError> {
    let seal_contexts: Vec<i64> = stored.iter().map(|one| one.scope_no.place(one.seq)).collect();
    let mut embeddings = index::embeddings(tx, &seal_contexts)?;
    for (one, place) in stored.iter_mut().zip(seal_contexts) {
        one.memory.embedding = embeddings.remove(&place);
    }
    Ok(())
}

/// An entry by its number, if it is still indexed under the same change: otherwise it has changed or gone since.
pub fn load(tx: &mut dyn Tx, scope: ScopeNo, no: MemoryNo, seq: i64) -> Result<Option<Stored>, StoreError> {
    let found = tx.first(
        concat!("SELECT ", columns!(), "WHERE m.no = $1 AND m.scope_no = $2 AND m.seq = $3"),
        &[no.0.into(), scope.0.into(), seq.into()],
        stored,
    )?;
    found.map(|open| open(tx)).transpose()
}

/// An entry by its number.
pub fn by_no(tx: &mut dyn Tx, no: MemoryNo) -> Result<Option<Stored>, StoreError> {
    let found = tx.first(concat!("SELECT ", columns!(), "WHERE m.no = $1"), &[no.0.into()], stored)?;
    found.map(|open| open(tx)).transpose()
}

/// Entries by their numbers, in no particular order.
pub fn with_numbers(tx: &mut dyn Tx, numbers: &[i64]) -> Result<Vec<Stored>, StoreError> {
    let sql = concat!("SELECT ", columns!(), "WHERE m.no = ANY($1)");
    let found = tx.rows(sql, &[Value::Ints(numbers)], stored)?;
    found.into_iter().map(|open| open(tx)).collect()
}

/// Entries of a scope before a position, newest first, until `each` has enough. At most `batch` are read at a time.
pub fn newest(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    before: Option<(Timestamp, MemoryId)>,
    batch: i64,
    mut each: impl FnMut(Stored) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut before = before.map_or((i64::MAX, Uuid::max()), |(at, id)| (at.as_micros(), id.0));
    loop {
        let params: [Value<'_>; 4] = [scope.0.into(), before.0.into(), before.1.into(), batch.into()];
        let mut read = Vec::new();
        tx.query(
            concat!(
                "SELECT ",
                columns!(),
                "WHERE m.scope_no = $1 AND (m.at, m.id) < ($2, $3) ORDER BY m.at DESC, m.id DESC LIMIT $4"
            ),
            &params,
            Lock::None,
            &mut |row| {
                read.push(stored(row)?);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        let full = read.len() as i64 == batch;
        for open in read {
            let stored = open(tx)?;
            before = (stored.memory.at().as_micros(), stored.memory.id.0);
            if each(stored).is_break() {
                return Ok(());
            }
        }
        if !full {
            return Ok(());
        }
    }
}

/// Up to `limit` entries of a scope after a number, in the order of their numbers.
pub fn after(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    after: MemoryNo,
    limit: i64,
) -> Result<Vec<Stored>, StoreError> {
    let seal_contexts = tx.rows(
        "SELECT no FROM memories WHERE scope_no = $1 AND no > $2 ORDER BY no LIMIT $3",
        &[scope.0.into(), after.0.into(), limit.into()],
        |row| row.int(0),
    )?;
    let mut found = Vec::with_capacity(seal_contexts.len());
    for no in seal_contexts {
        found.extend(by_no(tx, MemoryNo(no))?);
    }
    Ok(found)
}

/// Where a walk through what has expired goes on: after this instant and number.
#[derive(Debug, Clone, Copy)]
pub struct ExpiredSince(i64, i64);

impl ExpiredSince {
    /// Before all of it.
    pub const EVER: Self = Self(i64::MIN, 0);
}

/// Up to `limit` entries that have expired, oldest first, and where to go on if there may be more.
pub fn expired(
    tx: &mut dyn Tx,
    now: Timestamp,
    after: ExpiredSince,
    limit: i64,
) -> Result<(Vec<Stored>, Option<ExpiredSince>), StoreError> {
    let found = tx.rows(
        concat!(
            "SELECT ",
            columns!(),
            "WHERE m.expires_at <= $1 AND (m.expires_at, m.no) > ($2, $3) ORDER BY m.expires_at, m.no LIMIT $4"
        ),
        &[now.as_micros().into(), after.0.into(), after.1.into(), limit.into()],
        |row| Ok((ExpiredSince(row.int(11)?, row.int(0)?), stored(row)?)),
    )?;
    let next = found.last().map(|(at, _)| *at).filter(|_| found.len() as i64 == limit);
    // One that cannot be read must not keep the others from going; the vault has raised its alarm.
    Ok((found.into_iter().filter_map(|(_, open)| open(tx).ok()).collect(), next))
}

/// Up to `limit` entries that a user made in scopes that are not its own, none of them after `last`.
pub fn shared_by(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &str,
    last: MemoryNo,
    limit: i64,
) -> Result<Vec<Stored>, StoreError> {
    let found = tx.rows(
        concat!(
            "SELECT ",
            columns!(),
            "WHERE m.shared_by = $1 AND s.tenant = $2 AND m.no <= $3 ORDER BY m.no LIMIT $4"
        ),
        &[user.into(), tenant.as_str().into(), last.0.into(), limit.into()],
        stored,
    )?;
    found.into_iter().map(|open| open(tx)).collect()
}

/// Takes what they say out of the entries that only their maker could see, in scopes that are not its own and none of them
/// after `last`: before some of them go, as a scope's do (see [`super::purge::step`]). What is sealed says nothing already.
pub fn blank_private(tx: &mut dyn Tx, tenant: &Tenant, user: &str, last: MemoryNo) -> Result<(), StoreError> {
    if tx.vault().is_plain() {
        tx.post(
            "UPDATE memory_texts SET text = $4 WHERE id IN (SELECT id FROM memories WHERE shared_by = $1 AND no <= $3 \
             AND policy = $5 AND scope_no IN (SELECT id FROM memory_scopes WHERE tenant = $2))",
            &[
                user.into(),
                tenant.as_str().into(),
                last.0.into(),
                b"".as_slice().into(),
                Policy::Private.as_str().into(),
            ],
        )?;
        tx.post(
            "UPDATE memories SET content = $4, rest = $5, words = $4, statement = NULL WHERE shared_by = $1 AND no <= $3 \
             AND policy = $6 AND scope_no IN (SELECT id FROM memory_scopes WHERE tenant = $2)",
            &[
                user.into(),
                tenant.as_str().into(),
                last.0.into(),
                b"".as_slice().into(),
                b"{}".as_slice().into(),
                Policy::Private.as_str().into(),
            ],
        )?;
    }
    Ok(())
}

/// The number of the newest entry; 0 where there was never one.
pub fn last_no(tx: &mut dyn Tx) -> Result<MemoryNo, StoreError> {
    let last = tx.first("SELECT MAX(no) FROM memories", &[], |row| row.opt_int(0))?;
    Ok(MemoryNo(last.flatten().unwrap_or_default()))
}

/// Who made an entry in a scope that is not its own: what forgetting looks for.
pub(super) fn shared_author(memory: &Memory) -> Option<&str> {
    memory.created_by.user.as_deref().filter(|user| memory.scope.user() != Some(user))
}
