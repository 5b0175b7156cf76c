//! Scopes of memories: the number that entries hang on, and the count of their changes.

use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Author, Identifier, Layer, ScopeKey};

/// A scope's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeNo(pub i64);

/// Changes of a scope that fit into a place of the index.
const SEQ_BITS: u32 = 36;

impl ScopeNo {
    /// Where a change of this scope stands in the index.
    pub fn place(self, seq: i64) -> i64 {
        (self.0 << SEQ_BITS) | seq
    }

    /// The scope that a place belongs to.
    pub fn of(place: i64) -> Self {
        Self(place >> SEQ_BITS)
    }

    /// The change that stands at a place.
    pub fn seq(place: i64) -> i64 {
        place & ((1 << SEQ_BITS) - 1)
    }
}

/// Who searches a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Searched {
    /// Nodes, in their own memory.
    ByNodes,
    /// Nodes still, while the database is given what it needs: see [`crate::vectors`]. Who writes gives it its part.
    Filling,
    ByDatabase,
    /// Nodes again, while what the database was given is cleared away.
    Clearing,
}

impl Searched {
    pub(super) fn code(self) -> i64 {
        match self {
            Self::ByNodes => 0,
            Self::Filling => 1,
            Self::ByDatabase => 2,
            Self::Clearing => 3,
        }
    }

    fn from_code(code: i64) -> Option<Self> {
        [Self::ByNodes, Self::Filling, Self::ByDatabase, Self::Clearing]
            .into_iter()
            .find(|one| one.code() == code)
    }
}

/// A scope as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeRow {
    /// Its number.
    pub no: ScopeNo,
    /// How many entries it has, those that expired and were not swept yet among them.
    pub entries: i64,
    /// The number of its last change.
    pub seq: i64,
    /// Up to this change, what was removed is not noted any more.
    pub gone_seq: i64,
    /// See [`Searched`].
    pub searched: Searched,
    /// While it is being filled, the change that was filled in last; while the database searches it, how many entries it had
    /// when their words were counted.
    pub searched_to: i64,
}

impl ScopeRow {
    /// Whether what the database searches has a row for each of its entries, or is about to.
    pub(super) fn is_in_database(&self) -> bool {
        matches!(self.searched, Searched::Filling | Searched::ByDatabase)
    }
}

/// The columns that [`scope_row`] reads, of a table named `s`.
macro_rules! row_columns {
    () => {
        "s.id, s.entries, s.seq, s.gone_seq, s.searched, s.searched_to"
    };
}
pub(super) use row_columns;

const SELECT: &str = concat!("SELECT ", row_columns!(), " FROM memory_scopes s WHERE s.hash = $1");

pub(super) fn scope_row(row: &dyn Row) -> Result<ScopeRow, StoreError> {
    let searched = Searched::from_code(row.int(4)?);
    Ok(ScopeRow {
        no: ScopeNo(row.int(0)?),
        entries: row.int(1)?,
        seq: row.int(2)?,
        gone_seq: row.int(3)?,
        searched: searched
            .ok_or_else(|| StoreError::Broken("a scope does not say how it is searched".into()))?,
        searched_to: row.int(5)?,
    })
}

/// A scope, if anything was ever written in it.
pub fn find(tx: &mut dyn Tx, key: &ScopeKey) -> Result<Option<ScopeRow>, StoreError> {
    tx.first(SELECT, &[key.hash().0.as_slice().into()], scope_row)
}

/// The scope with a number, and which one it is.
pub fn numbered(tx: &mut dyn Tx, no: ScopeNo) -> Result<Option<(ScopeRow, ScopeKey)>, StoreError> {
    tx.first(
        concat!("SELECT ", row_columns!(), ", ", scope_columns!(), " FROM memory_scopes s WHERE s.id = $1"),
        &[no.0.into()],
        |row| Ok((scope_row(row)?, key(row, 6)?)),
    )
}

/// The scope, made if it is new, locked until the unit of work ends.
pub fn lock(tx: &mut dyn Tx, key: &ScopeKey) -> Result<ScopeRow, StoreError> {
    let hash = key.hash().0;
    if let Some(found) = tx.first_locked(SELECT, &[hash.as_slice().into()], scope_row)? {
        return Ok(found);
    }
    tx.post(
        "INSERT INTO memory_scopes (hash, tenant, layer, user_id, session_id, name, entries, seq, gone_seq) \
         VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0) ON CONFLICT (hash) DO NOTHING",
        &[
            hash.as_slice().into(),
            key.tenant().as_str().into(),
            i64::from(key.layer().precedence()).into(),
            key.user().into(),
            key.get(Identifier::Session).into(),
            name(key).as_str().into(),
        ],
    )?;
    tx.first_locked(SELECT, &[hash.as_slice().into()], scope_row)?
        .ok_or_else(|| StoreError::Broken("a scope is missing right after it was made".into()))
}

/// Notes how far a scope has come.
pub(super) fn advance(tx: &mut dyn Tx, no: ScopeNo, seq: i64, new_entries: i64) -> Result<(), StoreError> {
    tx.post(
        "UPDATE memory_scopes SET seq = $2, entries = entries + $3 WHERE id = $1",
        &[no.0.into(), seq.into(), new_entries.into()],
    )?;
    Ok(())
}

fn name(key: &ScopeKey) -> String {
    // A list of texts can always be written.
    serde_json::to_string(key.values()).unwrap_or_default()
}

/// The columns that [`key`] reads, of a table named `s`.
macro_rules! scope_columns {
    () => {
        "s.tenant, s.layer, s.name"
    };
}
pub(super) use scope_columns;

/// The scope of a row, from three columns on.
pub(super) fn key(row: &dyn Row, first: usize) -> Result<ScopeKey, StoreError> {
    let broken = || StoreError::Broken("a scope's name cannot be read".into());
    let tenant = Tenant::listed(row.text(first)?.to_owned());
    let layer = Layer::from_precedence(row.int(first + 1)?).ok_or_else(broken)?;
    let values = serde_json::from_str(row.text(first + 2)?).map_err(|_| broken())?;
    ScopeKey::listed(tenant, layer, values).ok_or_else(broken)
}

/// Up to `limit` scopes after a number: of one tenant, or of all.
pub fn after(
    tx: &mut dyn Tx,
    tenant: Option<&Tenant>,
    after: ScopeNo,
    limit: i64,
) -> Result<Vec<(ScopeRow, ScopeKey)>, StoreError> {
    let listed = |row: &dyn Row| Ok((scope_row(row)?, key(row, 6)?));
    match tenant {
        Some(tenant) => tx.rows(
            concat!(
                "SELECT ",
                row_columns!(),
                ", ",
                scope_columns!(),
                " FROM memory_scopes s WHERE s.tenant = $1 AND s.id > $2 ORDER BY s.id LIMIT $3"
            ),
            &[tenant.as_str().into(), after.0.into(), limit.into()],
            listed,
        ),
        None => tx.rows(
            concat!(
                "SELECT ",
                row_columns!(),
                ", ",
                scope_columns!(),
                " FROM memory_scopes s WHERE s.id > $1 ORDER BY s.id LIMIT $2"
            ),
            &[after.0.into(), limit.into()],
            listed,
        ),
    }
}

/// Whose scopes are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Anybody's, shared ones among them.
    Anybody,
    /// The personal ones of a user.
    User(String),
    /// Shared ones of a layer in which somebody made an entry: a user, or a client without a user.
    MadeIn(Layer, Author),
}

/// Up to `limit` scopes of a tenant after a number, in the order of their numbers: of those that have entries, as most do not
/// any more where each run of a program has its own.
pub fn with_entries(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    whose: &Whose,
    after: ScopeNo,
    limit: i64,
) -> Result<Vec<(ScopeRow, ScopeKey)>, StoreError> {
    macro_rules! select {
        ($conditions:literal) => {
            concat!(
                "SELECT ",
                row_columns!(),
                ", ",
                scope_columns!(),
                " FROM memory_scopes s WHERE s.tenant = $1 AND s.id > $2 AND s.entries > 0",
                $conditions,
                " ORDER BY s.id LIMIT $3"
            )
        };
    }
    let listed = |row: &dyn Row| Ok((scope_row(row)?, key(row, 6)?));
    let (tenant, after, limit) = (tenant.as_str().into(), after.0.into(), limit.into());
    match whose {
        Whose::Anybody => tx.rows(select!(""), &[tenant, after, limit], listed),
        Whose::User(user) => {
            tx.rows(select!(" AND s.user_id = $4"), &[tenant, after, limit, user.as_str().into()], listed)
        }
        Whose::MadeIn(layer, Author { user: Some(user), .. }) => tx.rows(
            select!(
                " AND s.layer = $4 AND s.id IN (SELECT m.scope_no FROM memories m WHERE m.shared_by = $5)"
            ),
            &[tenant, after, limit, i64::from(layer.precedence()).into(), user.as_str().into()],
            listed,
        ),
        Whose::MadeIn(layer, Author { user: None, client: Some(client) }) => tx.rows(
            select!(
                " AND s.layer = $4 AND EXISTS (SELECT 1 FROM memories m WHERE m.scope_no = s.id \
                 AND m.author_user IS NULL AND m.author_client = $5)"
            ),
            &[tenant, after, limit, i64::from(layer.precedence()).into(), client.as_str().into()],
            listed,
        ),
        Whose::MadeIn(_, Author { user: None, client: None }) => Ok(Vec::new()),
    }
}

/// How many entries there are in each layer, for the metrics.
pub fn entries_by_layer(tx: &mut dyn Tx) -> Result<Vec<(Layer, i64)>, StoreError> {
    let counted = tx.rows(
        "SELECT layer, CAST(SUM(entries) AS BIGINT) FROM memory_scopes GROUP BY layer",
        &[],
        |row| Ok((row.int(0)?, row.int(1)?)),
    )?;
    Ok(counted
        .into_iter()
        .filter_map(|(layer, entries)| Some((Layer::from_precedence(layer)?, entries)))
        .collect())
}
