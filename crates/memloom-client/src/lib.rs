//! To come.

mod address;
pub mod admin;
pub mod attachments;
mod builder;
mod call;
pub mod changes;
mod client;
pub mod conversations;
mod error;
pub mod files;
mod health;
mod hooks;
pub mod memories;
pub mod openspec;
pub mod operations;
mod options;
mod paging;
mod retry;
mod sse;

pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{ApiError, BoxError, Error, Result};
pub use files::{
    Assemble, AssembledContext, AssembledFile, DeleteRequest, DeletedFile, DropReason, DroppedFile, ETag,
    Envelope, EventDigest, EventQuery, FileEntry, FileList, FilePath, FileUpdate, ForgetReport, ListFiles,
    MoveRequest, MovedFile, PatchOp, PatchRequest, Precondition, Retention, RetentionReport, Scope,
    StoredFile, TextEdit, UpdateOptions, WriteRequest,
};
pub use health::{Health, ServiceStatus};
pub use hooks::HeaderProvider;
pub use memloom_core::{
    AttachmentId, ClientId, ConversationId, EntryId, Json, Timestamp, TransferId, UserId,
};
pub use options::CallOptions;
pub use reqwest::Url;
pub use retry::RetryPolicy;
