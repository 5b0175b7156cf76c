//! The nodes that share a store, as each of them says of itself.

use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use uuid::Uuid;

/// A process that works on the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its id, new with every start.
    pub id: Uuid,
    pub version: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it last said that it is there.
    pub seen_at: Timestamp,
}

/// Where a node runs and what it works with, so that people can tell nodes apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// The name of its machine; empty where it is unknown.
    pub host: String,
    /// Its process there.
    pub process: i64,
    /// The settings that nodes of one store must agree on, in words. Nothing secret is among them.
    pub settings: String,
}

impl std::fmt::Display for NodePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.process)?;
        if self.host.is_empty() { Ok(()) } else { write!(f, " on {}", self.host) }
    }
}

/// Says that a node is there.
pub fn beat(tx: &mut dyn Tx, node: &Node) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO nodes (id, version, started_at, seen_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at",
        &[
            node.id.into(),
            node.version.as_str().into(),
            node.started_at.as_micros().into(),
            node.seen_at.as_micros().into(),
        ],
    )?;
    Ok(())
}

/// Says where a node runs that is [there](beat). Once is enough: a node does not move.
pub fn introduce(tx: &mut dyn Tx, id: Uuid, place: &NodePlace) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE nodes SET host = $2, process = $3, settings = $4 WHERE id = $1 AND process IS NULL",
        &[id.into(), place.host.as_str().into(), place.process.into(), place.settings.as_str().into()],
    )?;
    Ok(())
}

/// Where the nodes run that were seen since an instant, the oldest first; nodes that have not said so are left out.
pub fn places(tx: &mut dyn Tx, since: Timestamp) -> Result<Vec<(Uuid, NodePlace)>, StoreError> {
    tx.rows(
        "SELECT id, host, process, settings FROM nodes WHERE seen_at >= $1 AND process IS NOT NULL ORDER BY started_at, id",
        &[since.as_micros().into()],
        |row| {
            let (host, settings) = (row.text(1)?.to_owned(), row.text(3)?.to_owned());
            Ok((row.uuid(0)?, NodePlace { host, process: row.int(2)?, settings }))
        },
    )
}

/// Notes that a node is gone.
pub fn remove(tx: &mut dyn Tx, id: Uuid) -> Result<(), StoreError> {
    tx.execute("DELETE FROM nodes WHERE id = $1", &[id.into()])?;
    Ok(())
}

/// Removes nodes that were not seen since an instant.
pub fn purge(tx: &mut dyn Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM nodes WHERE seen_at < $1", &[before.as_micros().into()])
}

/// The nodes that were seen since an instant, the oldest first.
pub fn seen_since(tx: &mut dyn Tx, since: Timestamp) -> Result<Vec<Node>, StoreError> {
    tx.rows(
        "SELECT id, version, started_at, seen_at FROM nodes WHERE seen_at >= $1 ORDER BY started_at, id",
        &[since.as_micros().into()],
        |row| {
            Ok(Node {
                id: row.uuid(0)?,
                version: row.text(1)?.to_owned(),
                started_at: Timestamp::from_micros(row.int(2)?),
                seen_at: Timestamp::from_micros(row.int(3)?),
            })
        },
    )
}
