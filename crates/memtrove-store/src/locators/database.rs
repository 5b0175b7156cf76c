//! Locators in a table of the store.
//!
//! Only an engine that nodes share has the table, so its clock can be asked: by those of the nodes a recording could seem to
//! have run out that was confirmed a moment ago.
//!
//! The table is not logged, and empty after a crash of the database. The mark of a node is a row of a tenant that does not exist.

use super::{Address, Locator, Notice, RecordingKey};
use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::ConversationId;
use memtrove_core::identity::Tenant;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

/// The database's time in microseconds.
macro_rules! now {
    () => {
        "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT"
    };
}

pub(super) fn tell(tx: &mut dyn Tx, notices: &[Notice], ttl: Duration) -> Result<(), StoreError> {
    for notice in notices {
        match notice {
            Notice::Begun(key, locator) => tx.post(
                concat!(
                    "INSERT INTO recordings (tenant, conversation_id, recording, node, host, port, expires_at) \
                     VALUES ($1, $2, $3, $4, $5, $6, ",
                    now!(),
                    " + $7) ON CONFLICT (tenant, conversation_id) DO UPDATE SET recording = excluded.recording, \
                     node = excluded.node, host = excluded.host, port = excluded.port, expires_at = excluded.expires_at"
                ),
                &row(key, locator, ttl),
            )?,
            Notice::Ended(key, locator) => tx.post(
                "DELETE FROM recordings WHERE tenant = $1 AND conversation_id = $2 AND recording = $3",
                &[key.tenant.as_str().into(), key.conversation.0.into(), locator.recording.into()],
            )?,
        }
    }
    Ok(())
}

pub(super) fn confirm(
    tx: &mut dyn Tx,
    node: Uuid,
    held: &[(RecordingKey, Locator)],
    ttl: Duration,
) -> Result<HashSet<Uuid>, StoreError> {
    let is_known = tx.execute(
        concat!(
            "UPDATE recordings SET expires_at = ",
            now!(),
            " + $2 WHERE recording = $1 AND expires_at > ",
            now!()
        ),
        &[node.into(), micros(ttl).into()],
    )? == 1;
    if !is_known {
        let own = RecordingKey { tenant: Tenant::listed(String::new()), conversation: ConversationId(node) };
        let nowhere = Address { host: String::new(), port: 0 };
        revived(tx, &own, &Locator { address: nowhere, recording: node, node }, ttl)?;
    }
    if held.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<Uuid> = held.iter().map(|(_, locator)| locator.recording).collect();
    let confirmed: HashSet<Uuid> = tx
        .rows(
            concat!(
                "UPDATE recordings SET expires_at = ",
                now!(),
                " + $2 WHERE recording = ANY($1) RETURNING recording"
            ),
            &[Value::Uuids(&ids), micros(ttl).into()],
            |row| row.uuid(0),
        )?
        .into_iter()
        .collect();
    let mut lost = HashSet::new();
    for (key, locator) in held.iter().filter(|(_, locator)| !confirmed.contains(&locator.recording)) {
        if is_known || !revived(tx, key, locator, ttl)? {
            lost.insert(locator.recording);
        }
    }
    Ok(lost)
}

/// Tells of a recording again, unless another is told of; says whether it did.
fn revived(
    tx: &mut dyn Tx,
    key: &RecordingKey,
    locator: &Locator,
    ttl: Duration,
) -> Result<bool, StoreError> {
    let told = tx.execute(
        concat!(
            "INSERT INTO recordings (tenant, conversation_id, recording, node, host, port, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, ",
            now!(),
            " + $7) ON CONFLICT (tenant, conversation_id) DO UPDATE SET recording = excluded.recording, \
             node = excluded.node, host = excluded.host, port = excluded.port, expires_at = excluded.expires_at \
             WHERE recordings.expires_at <= ",
            now!()
        ),
        &row(key, locator, ttl),
    )?;
    Ok(told == 1)
}

pub(super) fn find(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    ids: &[ConversationId],
) -> Result<HashMap<ConversationId, Locator>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = tx.rows(
        concat!(
            "SELECT conversation_id, recording, node, host, port FROM recordings \
             WHERE tenant = $1 AND conversation_id = ANY($2) AND expires_at > ",
            now!()
        ),
        &[tenant.as_str().into(), Value::Uuids(&ids)],
        |row| {
            let address = u16::try_from(row.int(4)?).ok();
            let address = address.and_then(|port| Address::new(row.text(3).ok()?, port));
            let (recording, node) = (row.uuid(1)?, row.uuid(2)?);
            let locator = address.map(|address| Locator { address, recording, node });
            Ok((ConversationId(row.uuid(0)?), locator))
        },
    )?;
    Ok(found.into_iter().filter_map(|(id, locator)| Locator::believed(id, locator)).collect())
}

pub(super) fn purge(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.post(concat!("DELETE FROM recordings WHERE expires_at <= ", now!()), &[])
}

fn row<'a>(key: &'a RecordingKey, locator: &'a Locator, ttl: Duration) -> [Value<'a>; 7] {
    [
        key.tenant.as_str().into(),
        key.conversation.0.into(),
        locator.recording.into(),
        locator.node.into(),
        locator.address.host.as_str().into(),
        i64::from(locator.address.port).into(),
        micros(ttl).into(),
    ]
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2)
}
