//! Attachments: files that belong to entries. One file per family of operations.
//!
//! Records are in the store and decide everything; bytes are in an object store and follow. A record is there before its
//! bytes, and goes after them: whatever stops in between, the [clean-up](cleanup) finds the record and finishes it.

mod admin;
pub(crate) mod cleanup;
pub(crate) mod deletion;
mod downloads;
mod fetching;
mod linking;
mod links;
mod uploading;

pub use admin::AdminAttachments;
pub use downloads::{Content, DownloadUrl};
pub use fetching::NewSource;
pub(crate) use linking::{Named, link};
pub use memtrove_core::attachments::{Attachment, Status};
pub use memtrove_store::attachments::AttachmentFilter;
pub use uploading::{NewAttachment, Upload};

use crate::conversations::access::{Access, AsReader, find};
use crate::{AttachmentSettings, Context};
use links::Links;
use memtrove_blobs::{BlobError, Blobs, Seal};
use memtrove_core::attachments::not_found;
use memtrove_core::identity::Caller;
use memtrove_core::{AttachmentId, Error, GroupId, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::attachments::{self, BlobKey};
use memtrove_store::conversations::{entries, rows};
use std::sync::Arc;
use std::time::Duration;

/// The use cases of attachments.
#[derive(Clone)]
pub struct Attachments {
    cx: Arc<Context>,
    links: Arc<Links>,
    fetches: Arc<fetching::Fetches>,
    /// What the keys of everything this store puts into an object store begin with, so that people can tell stores apart.
    place: Arc<str>,
}

impl Attachments {
    /// On the object store that the settings name. `key` signs links where no secret is configured.
    pub(crate) fn new(cx: Arc<Context>, key: &[u8; 32], place: &[u8]) -> Self {
        let secret = cx.settings.attachments.download_url_secret.as_ref().map(|secret| secret.as_slice());
        let links = Arc::new(Links::new(secret, key));
        Self { cx, links, fetches: Arc::default(), place: hex::encode(place).into() }
    }

    /// The largest file that is taken, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.settings().max_bytes
    }

    /// An attachment, for who uploaded it or may read the entry it belongs to; its bytes may not be there yet.
    pub async fn get(&self, caller: &Caller, id: AttachmentId) -> Result<Attachment> {
        Ok(self.visible(caller, id).await?.0)
    }

    async fn visible(&self, caller: &Caller, id: AttachmentId) -> Result<(Attachment, Option<BlobKey>)> {
        let (caller, now) = (caller.clone(), self.cx.clock.now());
        self.cx
            .store
            .read(caller.tenant().clone(), "get_attachment", move |tx| visible(tx, &caller, id, now))
            .await
    }

    fn settings(&self) -> &AttachmentSettings {
        &self.cx.settings.attachments
    }

    fn blobs(&self) -> Result<&Blobs> {
        blobs(&self.cx)
    }

    /// A record of bytes that are still to come, which lasts for this many microseconds.
    fn new_record(
        &self,
        caller: &Caller,
        filename: Option<String>,
        content_type: String,
        status: Status,
        lifetime: i64,
    ) -> Attachment {
        let (id, now) = (AttachmentId(self.cx.clock.new_id()), self.cx.clock.now());
        Attachment {
            id,
            tenant: caller.tenant().clone(),
            storage_key: self.storage_key(id),
            filename,
            content_type,
            size: None,
            sha256: None,
            user_id: Some(caller.user.clone()),
            entry_id: None,
            group_id: None,
            expires_at: Some(now.saturating_add_micros(lifetime)),
            created_at: now,
            deleted_at: None,
            status,
            source_url: None,
        }
    }

    /// Where the bytes of a new record go. The last byte of an id is spread evenly, so that no folder gets too large.
    fn storage_key(&self, id: AttachmentId) -> String {
        let [.., last] = id.0.into_bytes();
        format!("{}/{last:02x}/{}", self.place, id.0.simple())
    }
}

fn blobs(cx: &Context) -> Result<&Blobs> {
    let blobs = cx.settings.attachments.blobs.as_ref();
    blobs.ok_or_else(|| Error::conflict("Attachments are not enabled"))
}

/// Finds an attachment for a caller: it is there (else 404), and the caller uploaded it or reads the tree that it belongs to
/// (else 403).
fn visible(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: AttachmentId,
    now: Timestamp,
) -> Result<(Attachment, Option<BlobKey>)> {
    let found = attachments::get_with_key(tx, caller.tenant(), id)?.filter(|(found, _)| found.is_live(now));
    let (attachment, key) = found.ok_or_else(|| not_found(id))?;
    match (attachment.entry_id, attachment.is_of(&caller.user)) {
        (None, true) => {}
        (None, false) => return Err(Error::forbidden("the attachment belongs to another user")),
        (Some(entry), _) => {
            let access: Option<Access<AsReader>> = match entries::position(tx, entry)? {
                Some(position) => find(tx, caller, position.conversation)?,
                None => None,
            };
            access.ok_or_else(|| not_found(id))?;
        }
    }
    Ok((attachment, key))
}

/// Whether the tree is there that an attachment belongs to, if it does to one; nothing of a deleted tree is.
fn has_tree(tx: &mut dyn Tx, attachment: &Attachment) -> Result<bool> {
    let Some(entry) = attachment.entry_id else { return Ok(true) };
    let Some(position) = entries::position(tx, entry)? else { return Ok(false) };
    // A user who is a member of nothing: only whether the tree is there counts.
    let head = rows::head(tx, &attachment.tenant, &UserId::from(""), position.conversation)?;
    Ok(head.is_some_and(|head| !head.deleted))
}

/// What bytes are sealed with, bound to where they are.
fn seal(key: Option<&BlobKey>, storage_key: &str) -> Option<Seal> {
    key.map(|key| Seal::new(*key.bytes(), storage_key))
}

/// What an object store could not do, as the caller's error.
fn failed(error: BlobError) -> Error {
    match error {
        BlobError::Denied | BlobError::Unavailable(_) => {
            Error::storage_unavailable(format!("the object store of attachments: {error}"))
        }
        BlobError::Missing | BlobError::Damaged | BlobError::Invalid(_) => {
            Error::internal(format!("the bytes of an attachment: {error}"))
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Deletes what belongs to the entries of a tree that goes, in the unit of work that removes it; the bytes follow.
pub(crate) fn delete_with_tree(tx: &mut dyn Tx, group: GroupId, now: Timestamp) -> Result<()> {
    attachments::mark_tree_deleted(tx, group, now)?;
    Ok(())
}
