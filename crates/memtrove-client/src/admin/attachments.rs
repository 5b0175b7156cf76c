//! Every attachment of the tenant.

use super::{Admin, AdminAttachment, AdminAttachmentSummary, AttachmentFilter};
use crate::attachments::{Download, DownloadOptions, DownloadUrl};
use crate::conversations::{Page, PageRequest};
use crate::paging::listed;
use crate::{AttachmentId, EntryId, Result, operations};
use futures_util::Stream;
use serde_json::json;

/// Which attachments of the tenant to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListAdminAttachments {
    /// Only those this user brought.
    pub user_id: Option<String>,
    /// Only those of this entry.
    pub entry_id: Option<EntryId>,
    /// Which.
    pub status: Option<AttachmentFilter>,
    /// Which part of the list.
    pub page: PageRequest,
}

impl Admin {
    /// Lists attachments of the tenant.
    pub async fn list_attachments(
        &self,
        request: ListAdminAttachments,
    ) -> Result<Page<AdminAttachmentSummary>> {
        self.call(&operations::ADMIN_LIST_ATTACHMENTS, &[])?
            .query("userId", request.user_id)
            .query("entryId", request.entry_id)
            .query("status", request.status.map(AttachmentFilter::as_str))
            .page(request.page)
            .receive()
            .await
    }

    /// Lists attachments of the tenant to the last one, asking for more as they are taken.
    pub fn list_attachments_all(
        &self,
        request: ListAdminAttachments,
    ) -> impl Stream<Item = Result<AdminAttachmentSummary>> + Send + use<> {
        let admin = self.clone();
        listed(request.page.clone(), move |page| {
            let (admin, request) = (admin.clone(), request.clone());
            async move { admin.list_attachments(ListAdminAttachments { page, ..request }).await }
        })
    }

    /// What is known of an attachment.
    pub async fn get_attachment(&self, id: AttachmentId) -> Result<AdminAttachment> {
        self.call(&operations::ADMIN_GET_ATTACHMENT, &[&id.to_string()])?.receive().await
    }

    /// Deletes an attachment, whatever it belongs to.
    pub async fn delete_attachment(&self, id: AttachmentId) -> Result<()> {
        self.call(&operations::ADMIN_DELETE_ATTACHMENT, &[&id.to_string()])?.json(&json!({}))?.finish().await
    }

    /// Reads an attachment.
    pub async fn get_attachment_content(
        &self,
        id: AttachmentId,
        options: DownloadOptions,
    ) -> Result<Download> {
        let call = self.call(&operations::ADMIN_GET_ATTACHMENT_CONTENT, &[&id.to_string()])?;
        Download::open(&self.client, call, &options).await
    }

    /// Where an attachment can be read without credentials, for a short time.
    pub async fn get_attachment_download_url(&self, id: AttachmentId) -> Result<DownloadUrl> {
        self.call(&operations::ADMIN_GET_ATTACHMENT_DOWNLOAD_URL, &[&id.to_string()])?.receive().await
    }
}
