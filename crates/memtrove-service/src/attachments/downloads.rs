//! Reading attachments: here, at their source, or straight from the object store.

use super::{Attachments, failed, micros, seal};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use memtrove_blobs::BlobError;
use memtrove_core::attachments::{Attachment, Status, deliver, not_found};
use memtrove_core::identity::Caller;
use memtrove_core::{AttachmentId, Error, Result, UserId};
use memtrove_store::AllTenants;
use memtrove_store::attachments::{self, BlobKey};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::ops::Range;
use std::time::Duration;

/// What a name may have in a path without being escaped.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What a link to a file without a name ends with.
const UNNAMED: &str = "attachment";

/// Where the bytes of an attachment are to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Here: see [`Attachments::read`].
    Bytes,
    /// Elsewhere.
    Redirect {
        /// Where.
        url: String,
        /// For how long; not at all for an address that leads here in a moment.
        lasting: Duration,
    },
}

/// A link with which anybody may read an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadUrl {
    /// Where it leads; a path if it leads here.
    pub url: String,
    /// For how long.
    pub expires_in: Duration,
}

impl Attachments {
    /// An attachment for who may read it, and where its bytes are.
    pub async fn open(&self, caller: &Caller, id: AttachmentId) -> Result<(Attachment, Content)> {
        let (attachment, key) = self.visible(caller, id).await?;
        let content = self.content(&attachment, key.as_ref(), Some(&caller.user)).await?;
        Ok((attachment, content))
    }

    /// Only who named a source is led there: others would tell it who they are, and be led wherever somebody likes.
    pub(super) async fn content(
        &self,
        attachment: &Attachment,
        key: Option<&BlobKey>,
        reader: Option<&UserId>,
    ) -> Result<Content> {
        attachment.require_readable()?;
        if attachment.status == Status::Downloading {
            let own = reader.is_some_and(|reader| attachment.is_of(reader));
            let url = attachment.source_url.clone().filter(|_| own).ok_or(Error::UPLOAD_IN_PROGRESS)?;
            return Ok(Content::Redirect { url, lasting: Duration::ZERO });
        }
        let lasting = self.settings().download_url_expires_in;
        let direct = self.direct_url(attachment, key, lasting).await?;
        Ok(direct.map_or(Content::Bytes, |url| Content::Redirect { url, lasting }))
    }

    /// A link that the object store made, where that is wanted and it can. Sealed bytes are of no use to who follows it.
    async fn direct_url(
        &self,
        attachment: &Attachment,
        key: Option<&BlobKey>,
        lasting: Duration,
    ) -> Result<Option<String>> {
        if !self.settings().direct_download || key.is_some() {
            return Ok(None);
        }
        let delivery = deliver(&attachment.content_type, attachment.filename.as_deref());
        let (content_type, disposition) = (Some(delivery.content_type), Some(delivery.disposition));
        self.blobs()?
            .signed_url(&attachment.storage_key, lasting, content_type.as_deref(), disposition.as_deref())
            .await
            .map_err(failed)
    }

    /// The bytes of an attachment that was opened, or a range of them, as they come.
    pub async fn read(
        &self,
        attachment: &Attachment,
        range: Option<Range<u64>>,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let (tenant, id, now) = (attachment.tenant.clone(), attachment.id, self.cx.clock.now());
        let found = self.cx.store.read(&attachment.tenant, "read_attachment", move |tx| {
            let found = attachments::get_with_key(tx, &tenant, id)?.filter(|(found, _)| found.is_live(now));
            found.ok_or_else(|| not_found(id))
        });
        let (attachment, key) = found.await?;
        let seal = seal(key.as_ref(), &attachment.storage_key);
        let bytes = self.blobs()?.get(&attachment.storage_key, seal.as_ref(), range).await;
        match bytes {
            Ok(bytes) => Ok(bytes.map(|piece| piece.map_err(failed)).boxed()),
            Err(BlobError::Missing) => {
                tracing::error!(attachment = %id, "the bytes of an attachment are not in the object store");
                Err(not_found(id))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// A link with which anybody may read an attachment for a while, for who may read it.
    pub async fn download_url(&self, caller: &Caller, id: AttachmentId) -> Result<DownloadUrl> {
        let (attachment, key) = self.visible(caller, id).await?;
        self.link(&attachment, key.as_ref(), Some(&caller.user)).await
    }

    pub(super) async fn link(
        &self,
        attachment: &Attachment,
        key: Option<&BlobKey>,
        reader: Option<&UserId>,
    ) -> Result<DownloadUrl> {
        match self.content(attachment, key, reader).await? {
            Content::Redirect { url, lasting } => Ok(DownloadUrl { url, expires_in: lasting }),
            Content::Bytes => {
                let lasting = self.settings().download_url_expires_in;
                let until = self.cx.clock.now().saturating_add_micros(micros(lasting));
                let token = self.links.token(attachment, until);
                let name = attachment.filename.as_deref().unwrap_or(UNNAMED);
                let name = utf8_percent_encode(name, IN_PATH);
                let url = format!("/v1/attachments/download/{token}/{name}");
                Ok(DownloadUrl { url, expires_in: lasting })
            }
        }
    }

    /// The attachment that a link of ours leads to, and for how long it still does.
    pub async fn open_signed(&self, token: &str) -> Result<(Attachment, Duration)> {
        let refused = || Error::forbidden("the link is not valid, or not any more: ask for a new one");
        let claim = self.links.read(token).ok_or_else(refused)?;
        let now = self.cx.clock.now();
        let remaining = claim.expires_at.as_micros().saturating_sub(now.as_micros());
        if remaining <= 0 {
            return Err(refused());
        }
        let id = claim.id;
        let found = self.cx.store.read(AllTenants, "open_signed_attachment", move |tx| {
            let Some(found) = attachments::get_of_anybody(tx, id)?.filter(|found| found.is_live(now)) else {
                return Ok::<_, Error>(None);
            };
            Ok(super::has_tree(tx, &found)?.then_some(found))
        });
        let attachment = found.await?.ok_or_else(refused)?;
        if attachment.status != Status::Ready {
            return Err(refused());
        }
        Ok((attachment, Duration::from_micros(remaining as u64)))
    }
}
