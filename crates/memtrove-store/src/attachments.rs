//! The records of attachments. The bytes are none of this crate's business: it knows where they are and, where content is
//! sealed, what they were sealed with.
//!
//! Records that share bytes have the same storage key. A caller that decides by how many there are
//! [locks them all](lock_sharing) first, by writing them: of two that decide at once, one is run again.

use crate::vault::{self, seal_contexts};
use crate::{Row, StoreError, Tx, TxExt, Value};
use memtrove_core::attachments::{Attachment, Status};
use memtrove_core::files::Scope;
use memtrove_core::identity::Tenant;
use memtrove_core::{AttachmentId, EntryId, GroupId, Timestamp, UserId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Write as _;
use zeroize::Zeroizing;

const KEY_LENGTH: usize = 32;

/// What the bytes of an attachment are sealed with.
#[derive(Clone)]
pub struct BlobKey(Zeroizing<[u8; KEY_LENGTH]>);

impl BlobKey {
    /// A key that is not in use.
    fn random() -> Result<Self, StoreError> {
        vault::random().map(Self)
    }

    /// The key itself.
    pub fn bytes(&self) -> &[u8; KEY_LENGTH] {
        &self.0
    }
}

impl Serialize for BlobKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hex = Zeroizing::new(String::with_capacity(2 * KEY_LENGTH));
        for byte in self.0.iter() {
            // Writing to a `String` cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        serializer.serialize_str(&hex)
    }
}

impl<'de> Deserialize<'de> for BlobKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = Zeroizing::new(String::deserialize(deserializer)?);
        let mut key = Zeroizing::new([0; KEY_LENGTH]);
        let digits = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok();
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = digits(at).ok_or_else(|| serde::de::Error::custom("not a key"))?;
        }
        Ok(Self(key))
    }
}

/// What is sealed of a record. As text, because nothing else may be sealed.
#[derive(Serialize, Deserialize)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<BlobKey>,
}

impl Details {
    fn seal(&self, tx: &mut dyn Tx, tenant: &Tenant, id: AttachmentId) -> Result<Vec<u8>, StoreError> {
        let plain = serde_json::to_vec(self).map_err(|error| StoreError::Broken(error.to_string()))?;
        let plain = Zeroizing::new(plain);
        Ok(vault::seal(tx, tenant, &seal_contexts::attachment_details(id), &plain)?.into_owned())
    }

    fn open(tx: &mut dyn Tx, id: AttachmentId, stored: Vec<u8>) -> Result<Self, StoreError> {
        let plain = Zeroizing::new(vault::open(tx, &seal_contexts::attachment_details(id), stored)?);
        serde_json::from_slice(&plain).map_err(|_| StoreError::Broken("details of an attachment".into()))
    }
}

/// The columns that [`record`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, tenant, storage_key, user_id, group_id, entry_id, status, content_type, size, created_at, expires_at, \
             deleted_at, details FROM attachments ",
            $rest
        )
    };
}

/// A record whose details are still closed: a row holds the connection that opening them needs.
fn record(row: &dyn Row) -> Result<(Attachment, Vec<u8>), StoreError> {
    let status = Status::from_code(row.int(6)?);
    let attachment = Attachment {
        id: AttachmentId(row.uuid(0)?),
        tenant: Tenant::listed(row.text(1)?.to_owned()),
        storage_key: row.text(2)?.to_owned(),
        filename: None,
        content_type: row.text(7)?.to_owned(),
        size: row.opt_int(8)?.map(|size| size as u64),
        sha256: None,
        user_id: row.opt_text(3)?.map(UserId::from),
        entry_id: row.opt_uuid(5)?.map(EntryId),
        group_id: row.opt_uuid(4)?.map(GroupId),
        expires_at: row.opt_int(10)?.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(row.int(9)?),
        deleted_at: row.opt_int(11)?.map(Timestamp::from_micros),
        status: status.ok_or_else(|| StoreError::Broken("unknown status of an attachment".into()))?,
        source_url: None,
    };
    Ok((attachment, row.bytes(12)?.to_vec()))
}

fn opened(
    tx: &mut dyn Tx,
    (attachment, details): (Attachment, Vec<u8>),
) -> Result<(Attachment, Option<BlobKey>), StoreError> {
    let Details { filename, source_url, sha256, key } = Details::open(tx, attachment.id, details)?;
    Ok((Attachment { filename, source_url, sha256, ..attachment }, key))
}

/// Stores a new record. Where content is sealed, so are its bytes to be: with the key that comes back.
pub fn insert(tx: &mut dyn Tx, attachment: &Attachment) -> Result<Option<BlobKey>, StoreError> {
    let key = if tx.vault().seals() { Some(BlobKey::random()?) } else { None };
    insert_with(tx, attachment, key.as_ref())?;
    Ok(key)
}

fn insert_with(tx: &mut dyn Tx, attachment: &Attachment, key: Option<&BlobKey>) -> Result<(), StoreError> {
    let details = Details {
        filename: attachment.filename.clone(),
        source_url: attachment.source_url.clone(),
        sha256: attachment.sha256.clone(),
        key: key.cloned(),
    };
    let details = details.seal(tx, &attachment.tenant, attachment.id)?;
    tx.post(
        "INSERT INTO attachments (id, tenant, storage_key, user_id, group_id, entry_id, status, content_type, size, created_at, \
         expires_at, deleted_at, details) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        &[
            attachment.id.0.into(),
            attachment.tenant.as_str().into(),
            attachment.storage_key.as_str().into(),
            attachment.user_id.as_ref().map(UserId::as_str).into(),
            attachment.group_id.map(|group| group.0).into(),
            attachment.entry_id.map(|entry| entry.0).into(),
            attachment.status.code().into(),
            attachment.content_type.as_str().into(),
            attachment.size.map(|size| size as i64).into(),
            attachment.created_at.as_micros().into(),
            attachment.expires_at.map(Timestamp::as_micros).into(),
            attachment.deleted_at.map(Timestamp::as_micros).into(),
            details.as_slice().into(),
        ],
    )
}

/// A record, deleted or not.
pub fn get(tx: &mut dyn Tx, tenant: &Tenant, id: AttachmentId) -> Result<Option<Attachment>, StoreError> {
    Ok(get_with_key(tx, tenant, id)?.map(|(attachment, _)| attachment))
}

/// As [`get`], and what its bytes are sealed with.
pub fn get_with_key(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: AttachmentId,
) -> Result<Option<(Attachment, Option<BlobKey>)>, StoreError> {
    let params = [id.0.into(), tenant.as_str().into()];
    let found = tx.first(select!("WHERE id = $1 AND tenant = $2"), &params, record)?;
    found.map(|found| opened(tx, found)).transpose()
}

/// A record of whichever tenant: for those who have a link instead of a name.
pub fn get_of_anybody(tx: &mut dyn Tx, id: AttachmentId) -> Result<Option<Attachment>, StoreError> {
    let found = tx.first(select!("WHERE id = $1"), &[id.0.into()], record)?;
    Ok(found.map(|found| opened(tx, found)).transpose()?.map(|(attachment, _)| attachment))
}

/// Puts off the end of an upload; `false` if it has come already.
pub fn keep_uploading(tx: &mut dyn Tx, id: AttachmentId, until: Timestamp) -> Result<bool, StoreError> {
    let kept = tx.execute(
        "UPDATE attachments SET expires_at = $2 WHERE id = $1 AND status = 1 AND deleted_at IS NULL",
        &[id.0.into(), until.as_micros().into()],
    )?;
    Ok(kept == 1)
}

/// What is known of bytes once they are here.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// How many there are.
    pub size: u64,
    /// Their digest, in hexadecimal digits.
    pub sha256: String,
    /// What they are, if that has been learned on the way.
    pub content_type: Option<String>,
    /// When records that no entry refers to expire from now on, if that changes.
    pub expires_at: Option<Timestamp>,
}

/// Notes on every record that waits for these bytes that they are here; says how many that were.
pub fn set_arrived(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    storage_key: &str,
    arrived: &Arrived,
) -> Result<usize, StoreError> {
    let waiting = tx.rows(
        select!("WHERE storage_key = $1 AND tenant = $2 AND status IN (1, 2) AND deleted_at IS NULL"),
        &[storage_key.into(), tenant.as_str().into()],
        record,
    )?;
    let count = waiting.len();
    for (attachment, details) in waiting {
        let mut details = Details::open(tx, attachment.id, details)?;
        details.sha256 = Some(arrived.sha256.clone());
        let details = details.seal(tx, tenant, attachment.id)?;
        let content_type = arrived.content_type.as_deref().unwrap_or(&attachment.content_type);
        let expires_at = match attachment.entry_id {
            Some(_) => None,
            None => arrived.expires_at.or(attachment.expires_at),
        };
        tx.post(
            "UPDATE attachments SET status = 3, size = $2, content_type = $3, expires_at = $4, details = $5 WHERE id = $1",
            &[
                attachment.id.0.into(),
                (arrived.size as i64).into(),
                content_type.into(),
                expires_at.map(Timestamp::as_micros).into(),
                details.as_slice().into(),
            ],
        )?;
    }
    Ok(count)
}

/// Whether any record waits for these bytes to be fetched.
pub fn is_awaited(tx: &mut dyn Tx, tenant: &Tenant, storage_key: &str) -> Result<bool, StoreError> {
    let awaited = tx.first(
        "SELECT 1 FROM attachments WHERE storage_key = $1 AND tenant = $2 AND status = 2 AND deleted_at IS NULL LIMIT 1",
        &[storage_key.into(), tenant.as_str().into()],
        |_| Ok(()),
    )?;
    Ok(awaited.is_some())
}

/// Notes that bytes could not be fetched.
pub fn set_failed(tx: &mut dyn Tx, storage_key: &str) -> Result<(), StoreError> {
    tx.post("UPDATE attachments SET status = 4 WHERE storage_key = $1 AND status = 2", &[storage_key.into()])
}

/// Notes as failed what has been fetched since before `then`: its worker is gone.
pub fn give_up_downloads(tx: &mut dyn Tx, then: Timestamp) -> Result<u64, StoreError> {
    tx.execute(
        "UPDATE attachments SET status = 4 WHERE status = 2 AND created_at < $1",
        &[then.as_micros().into()],
    )
}

/// The records of these ids, as far as there are any.
pub fn find(tx: &mut dyn Tx, tenant: &Tenant, ids: &[AttachmentId]) -> Result<Vec<Attachment>, StoreError> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let params = [Value::Uuids(&ids), tenant.as_str().into()];
    let found = tx.rows(select!("WHERE id = ANY($1) AND tenant = $2"), &params, record)?;
    found.into_iter().map(|found| opened(tx, found).map(|(attachment, _)| attachment)).collect()
}

/// Makes a record part of an entry, as long as which it lives.
pub fn link(tx: &mut dyn Tx, id: AttachmentId, group: GroupId, entry: EntryId) -> Result<(), StoreError> {
    tx.post(
        "UPDATE attachments SET group_id = $2, entry_id = $3, expires_at = NULL WHERE id = $1",
        &[id.0.into(), group.0.into(), entry.0.into()],
    )
}

/// Stores a record that shares the bytes of another one. The other one is written too, so that its bytes are not taken away
/// who has not seen this one.
pub fn share(tx: &mut dyn Tx, of: AttachmentId, new: &Attachment) -> Result<(), StoreError> {
    tx.post("UPDATE attachments SET status = status WHERE id = $1", &[of.0.into()])?;
    let key = get_with_key(tx, &new.tenant, of)?.and_then(|(_, key)| key);
    insert_with(tx, new, key.as_ref())
}

/// A record that shares bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharing {
    /// The record.
    pub id: AttachmentId,
    /// Whether only its bytes are left to go.
    pub deleted: bool,
}

/// All records that share these bytes, locked until the unit of work ends.
pub fn lock_sharing(tx: &mut dyn Tx, storage_key: &str) -> Result<Vec<Sharing>, StoreError> {
    tx.rows(
        "UPDATE attachments SET status = status WHERE storage_key = $1 RETURNING id, deleted_at",
        &[storage_key.into()],
        |row| Ok(Sharing { id: AttachmentId(row.uuid(0)?), deleted: row.opt_int(1)?.is_some() }),
    )
}

/// How many records that are not deleted share these bytes.
pub fn count_sharing(tx: &mut dyn Tx, storage_key: &str) -> Result<u64, StoreError> {
    let count = tx.first(
        "SELECT COUNT(*) FROM attachments WHERE storage_key = $1 AND deleted_at IS NULL",
        &[storage_key.into()],
        |row| row.int(0),
    )?;
    Ok(count.unwrap_or_default() as u64)
}

/// Deletes a record; its bytes are still to go.
pub fn mark_deleted(tx: &mut dyn Tx, id: AttachmentId, now: Timestamp) -> Result<(), StoreError> {
    tx.post("UPDATE attachments SET deleted_at = $2 WHERE id = $1", &[id.0.into(), now.as_micros().into()])
}

/// Deletes what belongs to the entries of a tree; the bytes are still to go.
pub fn mark_tree_deleted(tx: &mut dyn Tx, group: GroupId, now: Timestamp) -> Result<u64, StoreError> {
    tx.execute(
        "UPDATE attachments SET deleted_at = $2 WHERE group_id = $1 AND deleted_at IS NULL",
        &[group.0.into(), now.as_micros().into()],
    )
}

/// Up to `limit` trees that are not there any more although something belongs to them: a node of a version that knew nothing of
/// attachments may have removed one.
pub fn uprooted(tx: &mut dyn Tx, limit: i64) -> Result<Vec<GroupId>, StoreError> {
    tx.rows(
        "SELECT DISTINCT a.group_id FROM attachments a WHERE a.group_id IS NOT NULL AND a.deleted_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = a.group_id) LIMIT $1",
        &[limit.into()],
        |row| Ok(GroupId(row.uuid(0)?)),
    )
}

/// Deletes up to `limit` records that have expired; the bytes are still to go.
pub fn mark_expired_deleted(tx: &mut dyn Tx, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
    tx.execute(
        "UPDATE attachments SET deleted_at = $1 WHERE id IN (SELECT id FROM attachments \
         WHERE expires_at <= $1 AND expires_at IS NOT NULL AND deleted_at IS NULL AND entry_id IS NULL LIMIT $2)",
        &[now.as_micros().into(), limit.into()],
    )
}

/// Deletes what a user brought and no entry refers to. The rest is part of what it said to others: its name goes, and where it
/// had the bytes from.
pub fn forget_user(tx: &mut dyn Tx, who: &Scope, now: Timestamp) -> Result<(), StoreError> {
    let key: [Value<'_>; 2] = [who.tenant().as_str().into(), who.user().as_str().into()];
    tx.post(
        "UPDATE attachments SET deleted_at = $3 \
         WHERE tenant = $1 AND user_id = $2 AND entry_id IS NULL AND deleted_at IS NULL",
        &[key[0], key[1], now.as_micros().into()],
    )?;
    let rest =
        tx.rows(select!("WHERE tenant = $1 AND user_id = $2 AND entry_id IS NOT NULL"), &key, record)?;
    for (attachment, details) in rest {
        let mut details = Details::open(tx, attachment.id, details)?;
        if details.source_url.take().is_some() {
            let details = details.seal(tx, who.tenant(), attachment.id)?;
            tx.post(
                "UPDATE attachments SET details = $2 WHERE id = $1",
                &[attachment.id.0.into(), details.as_slice().into()],
            )?;
        }
    }
    tx.post("UPDATE attachments SET user_id = NULL WHERE tenant = $1 AND user_id = $2", &key)
}

/// Up to `limit` deleted records whose bytes are still to go, in the order of their ids.
pub fn deleted(
    tx: &mut dyn Tx,
    after: Option<AttachmentId>,
    limit: i64,
) -> Result<Vec<(AttachmentId, String)>, StoreError> {
    let after = after.map_or(uuid::Uuid::nil(), |id| id.0);
    tx.rows(
        "SELECT id, storage_key FROM attachments WHERE deleted_at IS NOT NULL AND id > $1 ORDER BY id LIMIT $2",
        &[after.into(), limit.into()],
        |row| Ok((AttachmentId(row.uuid(0)?), row.text(1)?.to_owned())),
    )
}

/// Removes a record.
pub fn remove(tx: &mut dyn Tx, id: AttachmentId) -> Result<(), StoreError> {
    tx.post("DELETE FROM attachments WHERE id = $1", &[id.0.into()])
}

/// Removes the deleted records of bytes that are gone.
pub fn remove_deleted(tx: &mut dyn Tx, storage_key: &str) -> Result<(), StoreError> {
    tx.post(
        "DELETE FROM attachments WHERE storage_key = $1 AND deleted_at IS NOT NULL",
        &[storage_key.into()],
    )
}

/// The storage keys under which there are bytes, of one tenant or of all, in order.
pub(crate) fn keys_of_bytes(tx: &mut dyn Tx, tenant: Option<&str>) -> Result<Vec<String>, StoreError> {
    const ALL: &str = "SELECT DISTINCT storage_key FROM attachments WHERE status = 3 AND deleted_at IS NULL \
                       ORDER BY storage_key";
    const ONE: &str = "SELECT DISTINCT storage_key FROM attachments WHERE status = 3 AND deleted_at IS NULL \
                       AND tenant = $1 ORDER BY storage_key";
    let key = |row: &dyn Row| Ok(row.text(0)?.to_owned());
    match tenant {
        None => tx.rows(ALL, &[], key),
        Some(tenant) => tx.rows(ONE, &[tenant.into()], key),
    }
}

/// Which records an admin's list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttachmentFilter {
    /// Every one, deleted ones too until their bytes are gone.
    #[default]
    All,
    /// Those that belong to an entry.
    Linked,
    /// Those that do not, and whose time is not over.
    Unlinked,
    /// Those whose time is over.
    Expired,
}

/// An admin's list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Only what this user brought.
    pub user: Option<UserId>,
    /// Only what belongs to this entry.
    pub entry: Option<EntryId>,
    /// See [`AttachmentFilter`].
    pub filter: AttachmentFilter,
    /// What counts as expired.
    pub now: Timestamp,
    /// Only what is older than this one.
    pub after: Option<(Timestamp, AttachmentId)>,
    /// At most this many.
    pub limit: i64,
}

impl Listing {
    /// Whether a record of the tenant is on one of its pages.
    pub fn shows(&self, attachment: &Attachment) -> bool {
        let of_user = self.user.as_ref().is_none_or(|user| attachment.is_of(user));
        let of_entry = self.entry.is_none_or(|entry| attachment.entry_id == Some(entry));
        let (there, linked) = (attachment.deleted_at.is_none(), attachment.entry_id.is_some());
        let expired = attachment.is_expired(self.now);
        let of_status = match self.filter {
            AttachmentFilter::All => true,
            AttachmentFilter::Linked => there && linked,
            AttachmentFilter::Unlinked => there && !linked && !expired,
            AttachmentFilter::Expired => there && expired,
        };
        of_user && of_entry && of_status
    }
}

/// The records of a tenant, newest first.
pub fn list(tx: &mut dyn Tx, tenant: &Tenant, listing: &Listing) -> Result<Vec<Attachment>, StoreError> {
    let (at, id) =
        listing.after.unwrap_or((Timestamp::from_micros(i64::MAX), AttachmentId(uuid::Uuid::max())));
    let mut sql = select!("WHERE tenant = $1 AND (created_at, id) < ($2, $3)").to_owned();
    let mut params: Vec<Value<'_>> = vec![tenant.as_str().into(), at.as_micros().into(), id.0.into()];
    // Each may bring one more parameter. Writing to a `String` cannot fail, here and below.
    if let Some(user) = &listing.user {
        params.push(user.as_str().into());
        let _ = write!(sql, " AND user_id = ${}", params.len());
    }
    if let Some(entry) = listing.entry {
        params.push(entry.0.into());
        let _ = write!(sql, " AND entry_id = ${}", params.len());
    }
    let expiry = match listing.filter {
        AttachmentFilter::All => None,
        AttachmentFilter::Linked => {
            sql.push_str(" AND deleted_at IS NULL AND entry_id IS NOT NULL");
            None
        }
        AttachmentFilter::Unlinked => Some(">"),
        AttachmentFilter::Expired => Some("<="),
    };
    if let Some(than) = expiry {
        params.push(listing.now.as_micros().into());
        let number = params.len();
        let _ = write!(sql, " AND deleted_at IS NULL AND entry_id IS NULL AND expires_at {than} ${number}");
    }
    params.push(listing.limit.into());
    let _ = write!(sql, " ORDER BY created_at DESC, id DESC LIMIT ${}", params.len());
    let found = tx.rows(&sql, &params, record)?;
    found.into_iter().map(|found| opened(tx, found).map(|(attachment, _)| attachment)).collect()
}
