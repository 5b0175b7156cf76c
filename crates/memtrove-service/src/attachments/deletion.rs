//! Deleting records, and bytes that no record shares any more.
//!
//! First the record is marked, and from then on it is gone for everybody; then go its bytes; then the record, so that
//! whatever stops in between leaves something to go on from.

use super::{Attachments, blobs, failed};
use crate::Context;
use memtrove_core::attachments::{Attachment, not_found};
use memtrove_core::identity::Caller;
use memtrove_core::{AttachmentId, Error, Result, Timestamp};
use memtrove_store::attachments;
use memtrove_store::{AllTenants, StoreError, Tx};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Records that are looked for at once.
const BATCH: i64 = 200;
/// Failures in a row after which the object store is taken to be away.
const TRIES: u32 = 8;

impl Attachments {
    /// Deletes an attachment that no entry refers to, for who uploaded it.
    pub async fn delete(&self, caller: &Caller, id: AttachmentId) -> Result<()> {
        let (caller, now) = (caller.clone(), self.cx.clock.now());
        let mark = self.cx.store.write(caller.tenant().clone(), "delete_attachment", move |tx| {
            let found = attachments::get(tx, caller.tenant(), id)?.filter(|found| found.is_live(now));
            let attachment = found.ok_or_else(|| not_found(id))?;
            if !super::has_tree(tx, &attachment)? {
                return Err(not_found(id));
            }
            attachment.check_deletion(&caller.user)?;
            Ok::<_, Error>(mark(tx, &attachment, now)?)
        });
        mark.await?;
        self.cx.deletions.wake();
        Ok(())
    }

    /// Removes the bytes of what is deleted on this node, as soon as it is, for as long as it is polled.
    pub(crate) async fn run_deletions(&self) -> Infallible {
        loop {
            self.cx.deletions.wake.notified().await;
            if let Err(error) = finish_all(&self.cx).await {
                tracing::warn!(%error, "bytes of deleted attachments could not be removed; trying again later");
            }
        }
    }
}

/// The bytes that are still to go.
#[derive(Default)]
pub(crate) struct Deletions {
    wake: Notify,
    /// After which record to go on, if the object store was not there the last time.
    stopped_at: Mutex<Option<AttachmentId>>,
}

impl Deletions {
    /// Says that there may be some, so that no caller who deletes waits for the object store.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

/// Deletes a record, whatever state it is in, and its bytes.
pub(super) async fn delete(cx: &Context, attachment: &Attachment) -> Result<()> {
    let (tenant, id, now) = (attachment.tenant.clone(), attachment.id, cx.clock.now());
    cx.store
        .write(&attachment.tenant, "delete_attachment", move |tx| {
            if let Some(found) = attachments::get(tx, &tenant, id)? {
                mark(tx, &found, now)?;
            }
            Ok::<_, Error>(())
        })
        .await?;
    finish(cx, &attachment.storage_key).await
}

/// Takes a record out of everybody's reach. One of several that share their bytes is simply removed.
pub(super) fn mark(tx: &mut dyn Tx, attachment: &Attachment, now: Timestamp) -> Result<(), StoreError> {
    let sharing = attachments::lock_sharing(tx, &attachment.storage_key)?;
    if sharing.iter().any(|other| other.id != attachment.id && !other.deleted) {
        attachments::remove(tx, attachment.id)
    } else {
        attachments::mark_deleted(tx, attachment.id, now)
    }
}

/// Removes the bytes of deleted records, and then these; unless another record shares the bytes.
async fn finish(cx: &Context, storage_key: &str) -> Result<()> {
    let key = storage_key.to_owned();
    let unshared = cx.store.write(AllTenants, "check_attachment", move |tx| {
        let sharing = attachments::lock_sharing(tx, &key)?;
        let shared = sharing.iter().any(|record| !record.deleted);
        if shared {
            attachments::remove_deleted(tx, &key)?;
        }
        Ok::<_, Error>(!shared)
    });
    if !unshared.await? {
        return Ok(());
    }
    // They cannot be shared any more: only a record that is not deleted is.
    blobs(cx)?.delete(storage_key).await.map_err(failed)?;
    let key = storage_key.to_owned();
    cx.store
        .write(AllTenants, "remove_attachment", move |tx| {
            Ok::<_, Error>(attachments::remove_deleted(tx, &key)?)
        })
        .await
}

/// Removes the bytes of everything that is marked. What fails does not hold up the rest: an object store that is not there is
/// asked a few times, and the next time for others.
pub(crate) async fn finish_all(cx: &Context) -> Result<()> {
    if cx.settings.attachments.blobs.is_none() {
        return Ok(());
    }
    let stopped_at = || cx.deletions.stopped_at.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut after, mut in_a_row, mut failed, mut first) = (stopped_at().take(), 0, 0, None);
    loop {
        let batch = cx
            .store
            .read(AllTenants, "deleted_attachments", move |tx| {
                Ok::<_, Error>(attachments::deleted(tx, after, BATCH)?)
            })
            .await?;
        if batch.is_empty() {
            break;
        }
        for (id, storage_key) in batch {
            after = Some(id);
            let Err(error) = finish(cx, &storage_key).await else {
                in_a_row = 0;
                continue;
            };
            tracing::debug!(%error, attachment = %id, "the bytes of a deleted attachment could not be removed");
            (in_a_row, failed) = (in_a_row + 1, failed + 1);
            first.get_or_insert(error);
            if in_a_row == TRIES {
                *stopped_at() = after;
                return first.map_or(Ok(()), Err);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(error) => {
            tracing::info!(failed, "some bytes of deleted attachments could not be removed");
            Err(error)
        }
    }
}
