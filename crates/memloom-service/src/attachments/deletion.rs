//! Deleting records, and bytes that no record shares any more.
//!
//! First the record is marked, and from then on it is gone for everybody; then go its bytes; then the record, so that
//! whatever stops in between leaves something to go on from.

use super::{Attachments, blobs, failed};
use crate::Context;
use memloom_core::attachments::{Attachment, not_found};
use memloom_core::identity::Caller;
use memloom_core::{AttachmentId, Error, Result, Timestamp};
use memloom_store::attachments;
use memloom_store::{StoreError, Tx};

/// Records that are looked for at once.
const BATCH: i64 = 200;

impl Attachments {
    /// Deletes an attachment that no entry refers to, for who uploaded it.
    pub async fn delete(&self, caller: &Caller, id: AttachmentId) -> Result<()> {
        let (caller, now) = (caller.clone(), self.cx.clock.now());
        let mark = self.cx.store.write("delete_attachment", move |tx| {
            let found = attachments::get(tx, caller.tenant(), id)?.filter(|found| found.is_live(now));
            let attachment = found.ok_or_else(|| not_found(id))?;
            attachment.check_deletion(&caller.user)?;
            mark(tx, &attachment, now)?;
            Ok::<_, Error>(attachment.storage_key)
        });
        let storage_key = mark.await?;
        finish_soon(&self.cx, &storage_key).await;
        Ok(())
    }
}

/// Deletes a record, whatever state it is in, and its bytes.
pub(super) async fn delete(cx: &Context, attachment: &Attachment) -> Result<()> {
    let (tenant, id, now) = (attachment.tenant.clone(), attachment.id, cx.clock.now());
    cx.store
        .write("delete_attachment", move |tx| {
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
    let unshared = cx.store.write("check_attachment", move |tx| {
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
    // Nobody can begin to share them now: only who finds a record that is not deleted does.
    blobs(cx)?.delete(storage_key).await.map_err(failed)?;
    let key = storage_key.to_owned();
    cx.store
        .write("remove_attachment", move |tx| Ok::<_, Error>(attachments::remove_deleted(tx, &key)?))
        .await
}

/// As [`finish`], for those who are done either way: what fails is left to the clean-up.
pub(super) async fn finish_soon(cx: &Context, storage_key: &str) {
    if let Err(error) = finish(cx, storage_key).await {
        tracing::warn!(%error, "the bytes of a deleted attachment could not be removed; trying again later");
    }
}

/// Removes the bytes of everything that is marked; says of how many records. One that fails does not hold up the others, but an
/// object store that is not there is not asked again and again.
pub(crate) async fn finish_all(cx: &Context) -> Result<usize> {
    if cx.settings.attachments.blobs.is_none() {
        return Ok(0);
    }
    let (mut after, mut removed, mut failure) = (None, 0, None);
    loop {
        let batch = cx
            .store
            .read("deleted_attachments", move |tx| Ok::<_, Error>(attachments::deleted(tx, after, BATCH)?))
            .await?;
        let Some((last, _)) = batch.last() else { break };
        after = Some(*last);
        for (_, storage_key) in &batch {
            match finish(cx, storage_key).await {
                Ok(()) => removed += 1,
                Err(error @ Error::StorageUnavailable(_)) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
    }
    failure.map_or(Ok(removed), Err)
}

/// As [`finish_all`], for those whose work is done either way.
pub(crate) async fn finish_all_soon(cx: &Context) {
    if let Err(error) = finish_all(cx).await {
        tracing::warn!(%error, "bytes of deleted attachments could not be removed; trying again later");
    }
}
