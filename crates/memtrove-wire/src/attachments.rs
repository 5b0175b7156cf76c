//! Attachments: what is known of a file, and where its bytes are.

use crate::enums::words;
use memtrove_core::attachments as domain;
use memtrove_core::{AttachmentId, EntryId, Timestamp, UserId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

words!(
    /// Where the bytes of a file are.
    AttachmentStatus {
        /// On their way from the caller.
        Uploading = "uploading",
        /// On their way from a source on the web.
        Downloading = "downloading",
        /// Here.
        Ready = "ready",
        /// Nowhere: their source could not be fetched.
        Failed = "failed",
    }
);

impl From<domain::Status> for AttachmentStatus {
    fn from(status: domain::Status) -> Self {
        match status {
            domain::Status::Uploading => Self::Uploading,
            domain::Status::Downloading => Self::Downloading,
            domain::Status::Ready => Self::Ready,
            domain::Status::Failed => Self::Failed,
        }
    }
}

words!(
    /// Which files an admin lists.
    AttachmentFilter {
        /// All of them.
        All = "all",
        /// Those that belong to an entry.
        Linked = "linked",
        /// Those that belong to none yet.
        Unlinked = "unlinked",
        /// Those whose time is over.
        Expired = "expired",
    }
);

/// A file to fetch from the web.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateAttachmentRequest {
    /// Where it is, with `http` or `https`.
    #[schema(required = true, nullable = false, max_length = 2048, example = "https://example.org/plan.png")]
    pub source_url: Option<String>,
    /// What kind of file it is, whatever its source says.
    #[schema(max_length = 127, example = "image/png")]
    pub content_type: Option<String>,
    /// The name of the file.
    #[schema(max_length = 255)]
    pub name: Option<String>,
}

/// A file that belongs to an entry, or will.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Its id.
    #[schema(value_type = Uuid)]
    pub id: AttachmentId,
    /// Where its bytes are.
    #[schema(example = "/v1/attachments/0199d2a0-7c1e-7d51-a6f2-5b1c5c1f2f4e")]
    pub href: String,
    /// What kind of file it is.
    #[schema(example = "image/png")]
    pub content_type: String,
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// How many bytes it has, once they are here.
    pub size: Option<u64>,
    /// The digest of its bytes in hexadecimal digits, once they are here.
    pub sha256: Option<String>,
    /// When it goes, unless an entry refers to it by then.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Where its bytes are.
    pub status: AttachmentStatus,
    /// Where it is fetched from.
    pub source_url: Option<String>,
}

impl From<domain::Attachment> for Attachment {
    fn from(attachment: domain::Attachment) -> Self {
        Self {
            id: attachment.id,
            href: attachment.href(),
            content_type: attachment.content_type,
            filename: attachment.filename,
            size: attachment.size,
            sha256: attachment.sha256,
            expires_at: attachment.expires_at,
            status: attachment.status.into(),
            source_url: attachment.source_url,
        }
    }
}

/// Where the bytes of a file can be read without credentials, for a short time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadUrl {
    /// The address; without a scheme it is one of this server.
    pub url: String,
    /// For how many seconds it can be used. 0 while the file is fetched: then it is the address of its source.
    #[schema(example = 300)]
    pub expires_in: u64,
}

/// A file, as an admin sees it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminAttachmentSummary {
    /// Its id.
    #[schema(value_type = Uuid)]
    pub id: AttachmentId,
    /// Where its bytes are kept; several records may share them.
    pub storage_key: String,
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// What kind of file it is.
    pub content_type: String,
    /// How many bytes it has, once they are here.
    pub size: Option<u64>,
    /// The digest of its bytes in hexadecimal digits, once they are here.
    pub sha256: Option<String>,
    /// Who brought it; absent once that user was forgotten.
    #[schema(value_type = Option<String>)]
    pub user_id: Option<UserId>,
    /// The entry it belongs to.
    #[schema(value_type = Option<Uuid>)]
    pub entry_id: Option<EntryId>,
    /// When it goes by itself; absent once it belongs to an entry.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was deleted, if only its bytes are left to go.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deleted_at: Option<Timestamp>,
    /// Where its bytes are.
    pub status: AttachmentStatus,
    /// Where it was fetched from.
    pub source_url: Option<String>,
}

impl From<domain::Attachment> for AdminAttachmentSummary {
    fn from(attachment: domain::Attachment) -> Self {
        Self {
            id: attachment.id,
            storage_key: attachment.storage_key,
            filename: attachment.filename,
            content_type: attachment.content_type,
            size: attachment.size,
            sha256: attachment.sha256,
            user_id: attachment.user_id,
            entry_id: attachment.entry_id,
            expires_at: attachment.expires_at,
            created_at: attachment.created_at,
            deleted_at: attachment.deleted_at,
            status: attachment.status.into(),
            source_url: attachment.source_url,
        }
    }
}

/// A file with how many records share its bytes, as an admin sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminAttachment {
    /// The file.
    #[serde(flatten)]
    pub attachment: AdminAttachmentSummary,
    /// How many records share its bytes, itself included.
    pub ref_count: u64,
}
