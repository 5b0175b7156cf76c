//! What admins and auditors may do with any attachment of their tenant. Every call is in the audit log.

use super::{Attachments, Content, DownloadUrl, deletion};
use crate::audit::{AsAdmin, AsAuditor, Call, Grant, audited};
use crate::page::{self, Page};
use memtrove_core::attachments::{Attachment, not_found};
use memtrove_core::identity::{MAX_USER_ID_CHARS, Principal};
use memtrove_core::{AttachmentId, EntryId, Error, Result, UserId};
use memtrove_store::attachments::{self, AttachmentFilter, BlobKey, Listing};

/// A request for an admin's list of attachments.
#[derive(Debug, Clone, Default)]
pub struct AdminAttachments {
    /// Only what this user brought.
    pub user_id: Option<String>,
    /// Only what belongs to this entry.
    pub entry_id: Option<EntryId>,
    /// See [`AttachmentFilter`].
    pub status: AttachmentFilter,
    /// Go on after this attachment.
    pub after: Option<AttachmentId>,
    /// The size of the page.
    pub limit: Option<i64>,
}

impl Attachments {
    /// The attachments of a tenant, newest first.
    pub async fn admin_list(
        &self,
        principal: &Principal,
        request: AdminAttachments,
        justification: Option<&str>,
    ) -> Result<Page<Attachment>> {
        let detail = [
            ("userId", request.user_id.clone().unwrap_or_default()),
            ("entryId", request.entry_id.map(|entry| entry.to_string()).unwrap_or_default()),
            ("status", format!("{:?}", request.status)),
        ];
        let call = Call::read("listAttachments", &detail);
        let work = |grant| self.list_any(grant, request);
        audited(&self.cx, principal, call, justification, work).await
    }

    async fn list_any(&self, grant: Grant<AsAuditor>, request: AdminAttachments) -> Result<Page<Attachment>> {
        let limit = page::limit(request.limit, 50, 1000)?;
        let user = request.user_id.filter(|user| !user.trim().is_empty());
        if let Some(user) = &user
            && (user.chars().count() > MAX_USER_ID_CHARS || user.contains('\0'))
        {
            let message = format!("must have at most {MAX_USER_ID_CHARS} characters and no NUL");
            return Err(Error::invalid("userId", message));
        }
        let listing = Listing {
            user: user.map(UserId),
            entry: request.entry_id,
            filter: request.status,
            now: self.cx.clock.now(),
            after: None,
            limit: limit as i64 + 1,
        };
        let (tenant, after) = (grant.tenant().clone(), request.after);
        self.cx
            .store
            .read(grant.tenant(), "admin_list_attachments", move |tx| {
                let after = match after {
                    None => None,
                    Some(id) => {
                        let last = attachments::get(tx, &tenant, id)?.filter(|last| listing.shows(last));
                        let last = last.ok_or_else(|| page::unknown_cursor("after"))?;
                        Some((last.created_at, last.id))
                    }
                };
                let list = attachments::list(tx, &tenant, &Listing { after, ..listing.clone() })?;
                Ok(Page::cut(list, limit, |attachment| attachment.id.to_string()))
            })
            .await
    }

    /// Any attachment, also one whose bytes are still to go, and how many records share its bytes.
    pub async fn admin_get(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<(Attachment, u64)> {
        let detail = [("id", id.to_string())];
        let call = Call::read("getAttachment", &detail);
        let work = |grant: Grant<AsAuditor>| {
            self.cx.store.read(grant.tenant().clone(), "admin_get_attachment", move |tx| {
                let found = attachments::get(tx, grant.tenant(), id)?.ok_or_else(|| not_found(id))?;
                let sharing = attachments::count_sharing(tx, &found.storage_key)?;
                Ok((found, sharing))
            })
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// Any attachment, and where its bytes are.
    pub async fn admin_open(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<(Attachment, Content)> {
        let detail = [("id", id.to_string())];
        let call = Call::read("getAttachmentContent", &detail);
        let work = |grant| async move {
            let (attachment, key) = self.live(grant, id).await?;
            let content = self.content(&attachment, key.as_ref(), None).await?;
            Ok((attachment, content))
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// A link with which anybody may read any attachment for a while.
    pub async fn admin_download_url(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<DownloadUrl> {
        let detail = [("id", id.to_string())];
        let call = Call::read("getAttachmentDownloadUrl", &detail);
        let work = |grant| async move {
            let (attachment, key) = self.live(grant, id).await?;
            self.link(&attachment, key.as_ref(), None).await
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    async fn live(&self, grant: Grant<AsAuditor>, id: AttachmentId) -> Result<(Attachment, Option<BlobKey>)> {
        let now = self.cx.clock.now();
        self.cx
            .store
            .read(grant.tenant().clone(), "admin_open_attachment", move |tx| {
                let found = attachments::get_with_key(tx, grant.tenant(), id)?;
                found.filter(|(found, _)| found.is_live(now)).ok_or_else(|| not_found(id))
            })
            .await
    }

    /// Deletes any attachment, also one that an entry refers to. One that is deleted already is not there.
    pub async fn admin_delete(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<()> {
        let now = self.cx.clock.now();
        let detail = [("target", id.to_string())];
        let call = Call::write("deleteAttachment", &detail);
        let work = |grant: Grant<AsAdmin>| async move {
            let mark = self.cx.store.write(grant.tenant().clone(), "admin_delete_attachment", move |tx| {
                let found = attachments::get(tx, grant.tenant(), id)?;
                let found = found.filter(|found| found.deleted_at.is_none()).ok_or_else(|| not_found(id))?;
                Ok::<_, Error>(deletion::mark(tx, &found, now)?)
            });
            mark.await?;
            self.cx.deletions.wake();
            Ok(())
        };
        audited(&self.cx, principal, call, justification, work).await
    }
}
