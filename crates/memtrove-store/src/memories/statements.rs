//! Entries by the words they say, and which of them stands for a statement.
//!
//! Two columns of an entry's row: `words` is the digest of its normalised text, and no entry has none for long; `statement` says
//! what else makes it a statement ([`Statement`]) and is there on one entry of several that state the same. Both in one unique
//! index: two that remember the same at the same time cannot both commit.

use super::entries::{Stored, columns, stored};
use super::scopes::scope_columns;
use super::{MemoryNo, ScopeNo};
use crate::vault::{self, ContentDigest};
use crate::{Row, StoreError, Tx, TxExt, Value};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::duplicate::normalise;
use memtrove_core::memories::{Memory, Statement};

/// Instead of a digest, on entries that say nothing which can be read.
const NO_WORDS: &[u8] = b"";

/// What an entry is found by.
pub(super) struct Registration {
    pub words: ContentDigest,
    pub statement: ContentDigest,
}

impl Registration {
    pub fn of(tx: &mut dyn Tx, memory: &Memory) -> Result<Self, StoreError> {
        let words = vault::digest(tx, memory.scope.tenant(), normalise(&memory.content).as_bytes())?;
        Ok(Self { words, statement: vault::plain_digest(&Statement::of(memory).to_bytes()) })
    }
}

/// The statement that a row is given: none where another entry stands for it. The parameters are those of the scope, the words,
/// the statement and the row itself.
macro_rules! where_vacant {
    ($scope:literal, $words:literal, $statement:literal, $no:literal) => {
        concat!(
            "CASE WHEN EXISTS (SELECT 1 FROM memories o WHERE o.scope_no = ",
            $scope,
            " AND o.words = ",
            $words,
            " AND o.statement = ",
            $statement,
            " AND o.no <> ",
            $no,
            ") THEN NULL ELSE ",
            $statement,
            " END"
        )
    };
}
pub(super) use where_vacant;

/// Makes room for an entry that is to stand for what it states. Whichever did says the same still, and is found by its words.
pub(super) fn take_over(tx: &mut dyn Tx, scope: ScopeNo, memory: &Memory) -> Result<(), StoreError> {
    let Registration { words, statement } = Registration::of(tx, memory)?;
    tx.post(
        "UPDATE memories SET statement = NULL WHERE scope_no = $1 AND words = $2 AND statement = $3",
        &[scope.0.into(), words.as_slice().into(), statement.as_slice().into()],
    )?;
    Ok(())
}

/// The entries of a scope that say these words, whatever their case, their spacing and the punctuation at their end: those
/// first that stand for a statement, then the older ones. Right once the scope [is registered](is_registered).
pub fn saying(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeNo,
    content: &str,
) -> Result<Vec<Stored>, StoreError> {
    let mut found = Vec::new();
    for words in vault::digests(tx, tenant, normalise(content).as_bytes())? {
        let sql = concat!(
            "SELECT ",
            columns!(),
            "WHERE m.scope_no = $1 AND m.words = $2 ORDER BY CASE WHEN m.statement IS NULL THEN 1 ELSE 0 END, m.no"
        );
        for open in tx.rows(sql, &[scope.0.into(), words.as_slice().into()], stored)? {
            found.push(open(tx)?);
        }
    }
    Ok(found)
}

/// Whether every entry of a scope is found by its words: not those yet that an older version wrote, that came from an archive
/// or that were sealed anew.
pub fn is_registered(tx: &mut dyn Tx, scope: ScopeNo) -> Result<bool, StoreError> {
    let left = tx.first(
        "SELECT 1 FROM memories WHERE scope_no = $1 AND words IS NULL LIMIT 1",
        &[scope.0.into()],
        |row| row.int(0),
    )?;
    Ok(left.is_none())
}

/// Makes up to `limit` entries found by their words that are not yet, of one scope or of all; says how many.
pub fn register(tx: &mut dyn Tx, scope: Option<ScopeNo>, limit: i64) -> Result<usize, StoreError> {
    let read = |row: &dyn Row| Ok((MemoryNo(row.int(0)?), stored(row)?));
    let rows = match scope {
        Some(scope) => tx.rows(
            concat!(
                "SELECT ",
                columns!(),
                "WHERE m.words IS NULL AND m.scope_no = $2 ORDER BY m.no LIMIT $1"
            ),
            &[limit.into(), scope.0.into()],
            read,
        )?,
        None => {
            tx.rows(concat!("SELECT ", columns!(), "WHERE m.words IS NULL LIMIT $1"), &[limit.into()], read)?
        }
    };
    let count = rows.len();
    for (no, open) in rows {
        match open(tx) {
            Ok(stored) => put(tx, &stored)?,
            // The vault has raised its alarm. It must not keep the others from being found.
            Err(StoreError::Broken(_)) => {
                let params: [Value<'_>; 2] = [no.0.into(), NO_WORDS.into()];
                tx.post("UPDATE memories SET words = $2, statement = NULL WHERE no = $1", &params)?;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(count)
}

fn put(tx: &mut dyn Tx, stored: &Stored) -> Result<(), StoreError> {
    let Registration { words, statement } = Registration::of(tx, &stored.memory)?;
    tx.post(
        concat!(
            "UPDATE memories SET words = $3, statement = ",
            where_vacant!("$2", "$3", "$4", "$1"),
            " WHERE no = $1"
        ),
        &[stored.no.0.into(), stored.scope_no.0.into(), words.as_slice().into(), statement.as_slice().into()],
    )?;
    Ok(())
}
