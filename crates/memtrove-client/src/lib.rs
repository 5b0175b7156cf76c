//! A client of Memtrove, a memory service for AI agents: conversations, files and events, memories and facts.
//!
//! Every operation of the REST API is a method of [`Client`], with typed requests and answers. Reads are retried,
//! changes only with an idempotency key ([`operations`] says which is which), and the errors of all surfaces become one
//! [`ApiError`]. This crate does not know the server: types come from `memtrove-wire`, rules that can be checked before a
//! request is sent from `memtrove-core`.
//!
//! ```no_run
//! use memtrove_client::memories::{AddMemoryRequest, MemoryIdentifiers, MemoryLayer, SearchMemoriesRequest};
//! use memtrove_client::{Client, Result};
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let client = Client::builder().base_url("http://127.0.0.1:7077").api_key("planner").build()?;
//!     let dana = MemoryIdentifiers::user("dana");
//!     let memory = AddMemoryRequest::new(MemoryLayer::User, dana.clone(), "Dana prefers window seats");
//!     client.add_memory(memory).await?;
//!     let found = client.search_memories(SearchMemoriesRequest::new(dana, "which seats does she like?")).await?;
//!     for found in found.results {
//!         println!("{:.2} {}", found.score, found.memory.content);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The types of files stand at the root of the crate; those of the other surfaces in [`conversations`], [`attachments`],
//! [`changes`], [`memories`], [`openspec`] and [`admin`]. To add an operation, add its row to [`operations`] and a method to the
//! module of its surface.
#![warn(missing_docs)]

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

// Their types are in signatures of this crate: programs that name them have the same versions from here.
pub use {bytes, futures_util, http, reqwest, serde_json, uuid};

pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{ApiError, BoxError, Error, Result};
pub use files::{
    Assemble, AssembledContext, AssembledFile, DeleteRequest, DeletedFile, DropReason, DroppedFile, ETag,
    Envelope, EventDigest, EventQuery, FileEntry, FileList, FilePath, FileUpdate, FileVersion, ForgetReport,
    ListFiles, MoveRequest, MovedFile, PatchOp, PatchRequest, Precondition, Retention, RetentionReport,
    Scope, StoredFile, TextEdit, UpdateOptions, WriteRequest,
};
pub use health::{Health, ServiceStatus};
pub use hooks::HeaderProvider;
pub use memtrove_core::{
    AttachmentId, ClientId, ConversationId, EntryId, Json, Timestamp, TransferId, UserId,
};
pub use options::CallOptions;
pub use reqwest::Url;
pub use retry::RetryPolicy;
