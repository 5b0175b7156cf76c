//! Writing entries: many in one unit of work, each with its place in the index.

use super::index;
use super::scopes::{self, ScopeRow};
use super::statements::{self, Registration, where_vacant};
use super::{MemoryNo, entries, facts, pointers, searched, texts};
use crate::vault::{self, seal_contexts};
use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::memories::{Memory, ScopeHash, ScopeKey};
use memtrove_core::recall::terms::EntryTerms;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Entries that are written together. Scopes are looked up once and counted at the end, so [`Writing::finish`] must be called.
#[must_use]
#[derive(Default)]
pub struct Writing {
    scopes: HashMap<ScopeHash, Open>,
}

struct Open {
    row: ScopeRow,
    new_entries: i64,
}

impl Writing {
    fn open(&mut self, tx: &mut dyn Tx, key: &ScopeKey) -> Result<&mut Open, StoreError> {
        Ok(match self.scopes.entry(key.hash()) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => place.insert(Open { row: scopes::lock(tx, key)?, new_entries: 0 }),
        })
    }

    /// How many entries a scope has by now.
    pub fn count(&mut self, tx: &mut dyn Tx, key: &ScopeKey) -> Result<i64, StoreError> {
        let open = self.open(tx, key)?;
        Ok(open.row.entries + open.new_entries)
    }

    /// Stores a new entry.
    pub fn insert(
        &mut self,
        tx: &mut dyn Tx,
        memory: &Memory,
        terms: &EntryTerms,
    ) -> Result<MemoryNo, StoreError> {
        let tenant = memory.scope.tenant().clone();
        let open = self.open(tx, &memory.scope)?;
        open.row.seq += 1;
        open.new_entries += 1;
        let (scope, seq, in_database) = (open.row.no, open.row.seq, open.row.is_in_database());
        let id = memory.id.0;
        let content =
            vault::seal(tx, &tenant, &seal_contexts::memory_content(id), memory.content.as_bytes())?;
        let rest = entries::rest(memory);
        let rest = vault::seal(tx, &tenant, &seal_contexts::memory_rest(id), rest.as_bytes())?;
        let Registration { words, statement } = Registration::of(tx, memory)?;
        let no = tx.insert_numbered(
            concat!(
                "INSERT INTO memories (id, scope_no, seq, kind, origin_kind, state, version, at, created_at, updated_at, \
                 occurred_at, expires_at, ttl_seconds, anchor, author_user, author_client, shared_by, policy, content, \
                 rest, words, statement) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
                 $17, $18, $19, $20, $21, ",
                where_vacant!("$2", "$21", "$22", "0"),
                ") RETURNING no"
            ),
            &[
                id.into(),
                scope.0.into(),
                seq.into(),
                memory.kind.code().into(),
                memory.origin_kind.map(|kind| kind.code()).into(),
                memory.state.code().into(),
                memory.version.into(),
                memory.at().as_micros().into(),
                memory.created_at.as_micros().into(),
                memory.updated_at.as_micros().into(),
                memory.occurred_at.map(Timestamp::as_micros).into(),
                memory.expires_at.map(Timestamp::as_micros).into(),
                memory.ttl_seconds.into(),
                memory.anchor.as_micros().into(),
                memory.created_by.user.as_deref().into(),
                memory.created_by.client.as_deref().into(),
                entries::shared_author(memory).into(),
                memory.policy.policy.as_str().into(),
                (*content).into(),
                (*rest).into(),
                words.as_slice().into(),
                statement.as_slice().into(),
            ],
        )?;
        let no = MemoryNo(no);
        index::put(tx, scope, seq, no, memory, terms)?;
        if in_database {
            searched::put(tx, scope, seq, no, memory, terms)?;
        }
        facts::put(tx, scope, no, memory)?;
        if memory.is_pointer() {
            pointers::put(tx, no, memory)?;
        }
        Ok(no)
    }

    /// Stores a new entry that stands for what it states from now on.
    pub fn insert_first(
        &mut self,
        tx: &mut dyn Tx,
        memory: &Memory,
        terms: &EntryTerms,
    ) -> Result<MemoryNo, StoreError> {
        let scope = self.open(tx, &memory.scope)?.row.no;
        statements::take_over(tx, scope, memory)?;
        self.insert(tx, memory, terms)
    }

    /// Stores a new version of an entry, if the one there is still `expected`; says whether.
    pub fn replace(
        &mut self,
        tx: &mut dyn Tx,
        memory: &Memory,
        terms: &EntryTerms,
        expected: i64,
    ) -> Result<bool, StoreError> {
        let id = memory.id.0;
        let Some(StoredEntry { no, seq: old_seq, content, policy }) = at_version(tx, memory, expected)?
        else {
            return Ok(false);
        };
        let tenant = memory.scope.tenant().clone();
        let open = self.open(tx, &memory.scope)?;
        open.row.seq += 1;
        let (scope, seq, in_database) = (open.row.no, open.row.seq, open.row.is_in_database());
        let replaced = vault::open_text(tx, &seal_contexts::memory_content(id), content)?;
        // Those who see the entry see what it said before; those who did not may not.
        let same_viewers = policy.open(tx, id)? == memory.policy;
        if !same_viewers {
            texts::unsay(tx, &tenant, scope, memory.id)?;
        }
        if replaced != memory.content {
            texts::keep(tx, scope, memory, if same_viewers { &replaced } else { "" })?;
        }
        let content =
            vault::seal(tx, &tenant, &seal_contexts::memory_content(id), memory.content.as_bytes())?;
        let rest = entries::rest(memory);
        let rest = vault::seal(tx, &tenant, &seal_contexts::memory_rest(id), rest.as_bytes())?;
        let Registration { words, statement } = Registration::of(tx, memory)?;
        tx.post(
            concat!(
                "UPDATE memories SET seq = $2, kind = $3, origin_kind = $4, state = $5, version = $6, at = $7, \
                 updated_at = $8, occurred_at = $9, expires_at = $10, ttl_seconds = $11, anchor = $12, author_user = $13, \
                 author_client = $14, shared_by = $15, policy = $16, content = $17, rest = $18, words = $19, statement = ",
                where_vacant!("$21", "$19", "$20", "$1"),
                " WHERE no = $1"
            ),
            &[
                no.0.into(),
                seq.into(),
                memory.kind.code().into(),
                memory.origin_kind.map(|kind| kind.code()).into(),
                memory.state.code().into(),
                memory.version.into(),
                memory.at().as_micros().into(),
                memory.updated_at.as_micros().into(),
                memory.occurred_at.map(Timestamp::as_micros).into(),
                memory.expires_at.map(Timestamp::as_micros).into(),
                memory.ttl_seconds.into(),
                memory.anchor.as_micros().into(),
                memory.created_by.user.as_deref().into(),
                memory.created_by.client.as_deref().into(),
                entries::shared_author(memory).into(),
                memory.policy.policy.as_str().into(),
                (*content).into(),
                (*rest).into(),
                words.as_slice().into(),
                statement.as_slice().into(),
                scope.0.into(),
            ],
        )?;
        index::remove(tx, scope, old_seq)?;
        index::put(tx, scope, seq, no, memory, terms)?;
        if in_database {
            searched::put(tx, scope, seq, no, memory, terms)?;
        }
        facts::put(tx, scope, no, memory)?;
        pointers::put(tx, no, memory)?;
        Ok(true)
    }

    /// Removes an entry, if it is still at the version that is expected; says whether.
    pub fn remove(
        &mut self,
        tx: &mut dyn Tx,
        memory: &Memory,
        expected: Option<i64>,
    ) -> Result<bool, StoreError> {
        let found = at_version(tx, memory, expected.unwrap_or(memory.version))?;
        let Some(StoredEntry { no, seq: old_seq, .. }) = found else { return Ok(false) };
        let open = self.open(tx, &memory.scope)?;
        open.row.seq += 1;
        open.new_entries -= 1;
        let (scope, seq, in_database) = (open.row.no, open.row.seq, open.row.is_in_database());
        index::remove(tx, scope, old_seq)?;
        index::note_gone(tx, scope, seq, no)?;
        if in_database {
            searched::remove(tx, no)?;
        }
        remove_row(tx, no)?;
        Ok(true)
    }

    /// Notes how far the scopes have come.
    pub fn finish(self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        for Open { row, new_entries } in self.scopes.into_values() {
            scopes::advance(tx, row.no, row.seq, new_entries)?;
        }
        Ok(())
    }
}

/// The number and place of an entry, what it says, and who may see it, as it is stored.
struct StoredEntry {
    no: MemoryNo,
    seq: i64,
    content: Vec<u8>,
    policy: entries::SealedPolicy,
}

/// An entry, if it is at this version.
fn at_version(tx: &mut dyn Tx, memory: &Memory, expected: i64) -> Result<Option<StoredEntry>, StoreError> {
    tx.first_locked(
        "SELECT m.no, m.seq, m.content, m.policy, m.rest FROM memories m JOIN memory_scopes s ON s.id = m.scope_no \
         WHERE m.id = $1 AND m.version = $2 AND s.hash = $3",
        &[memory.id.0.into(), expected.into(), memory.scope.hash().0.as_slice().into()],
        |row| {
            Ok(StoredEntry {
                no: MemoryNo(row.int(0)?),
                seq: row.int(1)?,
                content: row.bytes(2)?.to_vec(),
                policy: entries::SealedPolicy::read(row, 3)?,
            })
        },
    )
}

/// Writes what is no new version: links between entries, and when an entry expires. It is found as before, so its words and its
/// vector are taken over.
pub fn amend(tx: &mut dyn Tx, stored: &entries::Stored) -> Result<(), StoreError> {
    let stored = match &stored.memory.embedding {
        Some(_) => stored.clone(),
        None => entries::with_embedding(tx, stored.clone())?,
    };
    let terms = index::terms(tx, stored.scope_no, stored.seq)?;
    let mut writing = Writing::default();
    writing.replace(tx, &stored.memory, &terms, stored.memory.version)?;
    writing.finish(tx)
}

/// Deletes an entry and everything that hangs on its number.
pub(super) fn remove_row(tx: &mut dyn Tx, no: MemoryNo) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM memory_texts WHERE id = (SELECT id FROM memories WHERE no = $1)",
        "DELETE FROM memories WHERE no = $1",
        "DELETE FROM memory_facts WHERE no = $1",
        "DELETE FROM memory_pointers WHERE no = $1",
        "DELETE FROM memory_uses WHERE no = $1",
        "DELETE FROM memory_versions WHERE no = $1",
        "DELETE FROM memory_upgrades WHERE no = $1",
    ] {
        tx.post(sql, &[no.0.into()])?;
    }
    Ok(())
}
