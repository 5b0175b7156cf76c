//! What admins and auditors may do with any attachment of their tenant. Every call is in the audit log.

use super::{Attachments, Content, DownloadUrl, deletion};
use crate::audit::{self, Call};
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
    /// Runs an admin call between its two lines in the audit log, if it is admitted at all.
    async fn audited<T>(
        &self,
        principal: &Principal,
        call: Call<'_>,
        justification: Option<&str>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        audit::admit(principal, &call, justification, self.cx.settings.require_justification)?;
        let result = work.await;
        audit::outcome(call.action, &result);
        result
    }

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
        let work = self.admin_page(principal, request);
        self.audited(principal, Call::read("listAttachments", &detail), justification, work).await
    }

    async fn admin_page(&self, principal: &Principal, request: AdminAttachments) -> Result<Page<Attachment>> {
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
        let (tenant, after) = (principal.tenant().clone(), request.after);
        self.cx
            .store
            .read(principal.tenant(), "admin_list_attachments", move |tx| {
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
        let tenant = principal.tenant().clone();
        let work = self.cx.store.read(principal.tenant(), "admin_get_attachment", move |tx| {
            let found = attachments::get(tx, &tenant, id)?.ok_or_else(|| not_found(id))?;
            let sharing = attachments::count_sharing(tx, &found.storage_key)?;
            Ok((found, sharing))
        });
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("getAttachment", &detail), justification, work).await
    }

    /// Any attachment, and where its bytes are.
    pub async fn admin_open(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<(Attachment, Content)> {
        let work = async {
            let (attachment, key) = self.live(principal, id).await?;
            let content = self.content(&attachment, key.as_ref(), None).await?;
            Ok((attachment, content))
        };
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("getAttachmentContent", &detail), justification, work).await
    }

    /// A link with which anybody may read any attachment for a while.
    pub async fn admin_download_url(
        &self,
        principal: &Principal,
        id: AttachmentId,
        justification: Option<&str>,
    ) -> Result<DownloadUrl> {
        let work = async {
            let (attachment, key) = self.live(principal, id).await?;
            self.link(&attachment, key.as_ref(), None).await
        };
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("getAttachmentDownloadUrl", &detail), justification, work).await
    }

    async fn live(&self, principal: &Principal, id: AttachmentId) -> Result<(Attachment, Option<BlobKey>)> {
        let (tenant, now) = (principal.tenant().clone(), self.cx.clock.now());
        self.cx
            .store
            .read(principal.tenant(), "admin_open_attachment", move |tx| {
                let found = attachments::get_with_key(tx, &tenant, id)?;
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
        let (tenant, now) = (principal.tenant().clone(), self.cx.clock.now());
        let work = async {
            let mark = self.cx.store.write(principal.tenant(), "admin_delete_attachment", move |tx| {
                let found = attachments::get(tx, &tenant, id)?.filter(|found| found.deleted_at.is_none());
                let found = found.ok_or_else(|| not_found(id))?;
                Ok::<_, Error>(deletion::mark(tx, &found, now)?)
            });
            mark.await?;
            self.cx.deletions.wake();
            Ok(())
        };
        let detail = [("target", id.to_string())];
        self.audited(principal, Call::write("deleteAttachment", &detail), justification, work).await
    }
}
