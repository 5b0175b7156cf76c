//! Who may do what in a tree.

use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::conversations::{AccessLevel, Membership};
use memtrove_core::identity::Tenant;
use memtrove_core::{GroupId, Timestamp, UserId};

/// Adds a member, or changes the level of one; answers the membership as it is now.
pub fn upsert(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    user: &UserId,
    level: AccessLevel,
    now: Timestamp,
) -> Result<Membership, StoreError> {
    tx.first(
        "INSERT INTO memberships (group_id, user_id, tenant, access_level, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (group_id, user_id) DO UPDATE SET access_level = excluded.access_level \
         RETURNING user_id, access_level, created_at",
        &[
            group.0.into(),
            user.as_str().into(),
            tenant.as_str().into(),
            level.code().into(),
            now.as_micros().into(),
        ],
        membership,
    )?
    .ok_or_else(|| StoreError::Broken("an upsert returned nothing".into()))
}

/// One member.
pub fn get(tx: &mut dyn Tx, group: GroupId, user: &UserId) -> Result<Option<Membership>, StoreError> {
    tx.first(
        "SELECT user_id, access_level, created_at FROM memberships WHERE group_id = $1 AND user_id = $2",
        &[group.0.into(), user.as_str().into()],
        membership,
    )
}

/// Members in the byte order of their ids.
pub fn list(
    tx: &mut dyn Tx,
    group: GroupId,
    after: Option<&UserId>,
    limit: i64,
) -> Result<Vec<Membership>, StoreError> {
    // No user id is empty, so everything comes after the empty text.
    tx.rows(
        "SELECT user_id, access_level, created_at FROM memberships WHERE group_id = $1 AND user_id > $2 \
         ORDER BY user_id LIMIT $3",
        &[group.0.into(), after.map_or("", |user| user.as_str()).into(), limit.into()],
        membership,
    )
}

/// Changes the level of a member.
pub fn set_level(
    tx: &mut dyn Tx,
    group: GroupId,
    user: &UserId,
    level: AccessLevel,
) -> Result<(), StoreError> {
    tx.post(
        "UPDATE memberships SET access_level = $3 WHERE group_id = $1 AND user_id = $2",
        &[group.0.into(), user.as_str().into(), level.code().into()],
    )?;
    Ok(())
}

/// Removes a member. That it was one stays known: what it wrote is still there.
pub fn delete(tx: &mut dyn Tx, group: GroupId, user: &UserId) -> Result<(), StoreError> {
    let member = [group.0.into(), user.as_str().into()];
    tx.post(
        "INSERT INTO past_members (group_id, user_id, tenant) SELECT group_id, user_id, tenant FROM memberships \
         WHERE group_id = $1 AND user_id = $2 ON CONFLICT (group_id, user_id) DO NOTHING",
        &member,
    )?;
    tx.post("DELETE FROM memberships WHERE group_id = $1 AND user_id = $2", &member)?;
    Ok(())
}

fn membership(row: &dyn Row) -> Result<Membership, StoreError> {
    Ok(Membership {
        user_id: UserId(row.text(0)?.to_owned()),
        access_level: super::access_level(row.int(1)?)?,
        created_at: super::timestamp(row, 2)?,
    })
}
