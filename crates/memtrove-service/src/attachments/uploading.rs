//! Bytes that a caller sends.
//!
//! The record is there first, with a short time to live that is put off as long as the upload is: one whose process died is
//! over within a minute, and the clean-up takes away what it left.

use super::{Attachments, deletion, failed, micros, seal};
use crate::Context;
use bytes::Bytes;
use memtrove_core::attachments::{self as rules, Attachment, Status};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{AttachmentId, Error, Result};
use memtrove_store::attachments::{self, Arrived};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// What a caller says of a file it is about to send.
#[derive(Debug, Clone, Default)]
pub struct NewAttachment {
    /// Its name.
    pub filename: Option<String>,
    /// What kind of file it is.
    pub content_type: Option<String>,
    /// How long it is kept unless an entry refers to it, as an ISO 8601 duration.
    pub expires_in: Option<String>,
}

/// A file that is being sent. Dropped before it is finished, nothing of it stays.
pub struct Upload {
    cx: Arc<Context>,
    record: Attachment,
    /// None once it failed, or is finished.
    blob: Option<memtrove_blobs::Upload>,
    hasher: Sha256,
    size: u64,
    /// In microseconds, from the end of the upload on.
    lifetime: i64,
    keeper: JoinHandle<()>,
    finished: bool,
}

impl Attachments {
    /// Begins an upload.
    pub async fn begin(&self, caller: &Caller, new: NewAttachment) -> Result<Upload> {
        let settings = self.settings();
        let filename = rules::filename(new.filename.as_deref())?;
        let content_type = rules::content_type(new.content_type.as_deref())?;
        let (default, max) = (micros(settings.default_expires_in), micros(settings.max_expires_in));
        let lifetime = rules::lifetime(new.expires_in.as_deref(), default, max)?;
        let blobs = self.blobs()?;
        let record = self.new_record(
            caller,
            filename,
            content_type,
            Status::Uploading,
            micros(settings.upload_expires_in),
        );
        let id = record.id;
        let new = record.clone();
        let key = self
            .cx
            .store
            .write(caller.tenant(), "begin_attachment", move |tx| {
                Ok::<_, Error>(attachments::insert(tx, &new)?)
            })
            .await?;
        let seal = seal(key.as_ref(), &record.storage_key);
        // From here on whatever happens is undone when this is dropped.
        let mut upload = Upload {
            cx: self.cx.clone(),
            keeper: tokio::spawn(keep(self.cx.clone(), record.tenant.clone(), id)),
            record,
            blob: None,
            hasher: Sha256::new(),
            size: 0,
            lifetime,
            finished: false,
        };
        upload.blob = Some(blobs.put(&upload.record.storage_key, seal.as_ref()).await.map_err(failed)?);
        Ok(upload)
    }
}

impl Upload {
    /// The id that the attachment will have.
    pub fn id(&self) -> AttachmentId {
        self.record.id
    }

    /// Adds bytes to the end. Waits as long as the object store takes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let max_bytes = self.cx.settings.attachments.max_bytes;
        let size = self.size + bytes.len() as u64;
        if size > max_bytes {
            return Err(Error::file_too_large(max_bytes, size));
        }
        let blob = self.blob.as_mut().ok_or_else(|| Error::internal("an upload goes on that failed"))?;
        self.hasher.update(&bytes);
        self.size = size;
        blob.write(bytes).await.map_err(failed)
    }

    /// Makes it an attachment. When this returns, it survives a crash.
    pub async fn finish(mut self) -> Result<Attachment> {
        let blob = self.blob.take().ok_or_else(|| Error::internal("an upload ends that failed"))?;
        blob.finish().await.map_err(failed)?;
        let now = self.cx.clock.now();
        let arrived = Arrived {
            size: self.size,
            sha256: hex::encode(std::mem::take(&mut self.hasher).finalize()),
            content_type: None,
            expires_at: Some(now.saturating_add_micros(self.lifetime)),
        };
        let record = self.record.clone();
        let ready = self.cx.store.write(&self.record.tenant, "finish_attachment", move |tx| {
            attachments::set_arrived(tx, &record.tenant, &record.storage_key, &arrived)?;
            let ready = attachments::get(tx, &record.tenant, record.id)?;
            Ok::<_, Error>(ready.filter(|ready| ready.deleted_at.is_none()))
        });
        let Some(ready) = ready.await? else {
            let why = "an upload was given up, because nothing was heard of it for too long";
            return Err(Error::storage_unavailable(why));
        };
        self.finished = true;
        Ok(ready)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.keeper.abort();
        if self.finished {
            return;
        }
        // Where nothing can be done any more, the process ends, and the clean-up does it after a minute.
        let Ok(runtime) = Handle::try_current() else { return };
        let (cx, record, blob) = (self.cx.clone(), self.record.clone(), self.blob.take());
        runtime.spawn(async move {
            if let Some(blob) = blob
                && let Err(error) = blob.abort().await
            {
                tracing::debug!(%error, "an upload could not be taken back; the clean-up will find it");
            }
            if let Err(error) = deletion::delete(&cx, &record).await {
                tracing::debug!(%error, "an upload could not be undone; the clean-up will do it");
            }
        });
    }
}

/// Puts off the end of an upload, for as long as it is polled.
async fn keep(cx: Arc<Context>, tenant: Tenant, id: AttachmentId) {
    let settings = &cx.settings.attachments;
    loop {
        tokio::time::sleep(settings.upload_refresh).await;
        let until = cx.clock.now().saturating_add_micros(micros(settings.upload_expires_in));
        let keep = move |tx: &mut dyn memtrove_store::Tx| {
            Ok::<_, Error>(attachments::keep_uploading(tx, id, until)?)
        };
        match cx.store.write(&tenant, "keep_attachment", keep).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::debug!(%error, "an upload could not be noted as alive; trying again soon"),
        }
    }
}
