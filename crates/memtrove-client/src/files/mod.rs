//! Files, events, and what is done with a whole user.
//!
//! A file is one JSON document, the [`Envelope`], under a path of a [`Scope`]. Every version has an [`ETag`], and every change
//! names the version it is made to, so no caller overwrites what it has not seen. [`Client::update_with_retry`] does the
//! reading, changing and trying again.
//!
//! [`Client::update_with_retry`]: crate::Client::update_with_retry

mod audit;
mod context;
mod documents;
mod events;
mod lifecycle;
mod patch;
mod path;
mod removal;
mod scope;
mod update;
mod version;

pub use audit::{AuditQuery, Reconstruct, ReconstructedFile};
pub use context::{Assemble, AssembledContext, AssembledFile, DropReason, DroppedFile};
pub use documents::{FileEntry, FileList, ListFiles, StoredFile, WriteRequest};
pub use events::EventQuery;
pub use lifecycle::{Retention, RetentionReport};
pub use memtrove_wire::files::{
    AuditPage, AuditRecord, Envelope, EventDigest, ForgetReport, ForgottenConversations, ForgottenMemories,
    Job, JobStarted,
};
pub use patch::{PatchOp, PatchRequest, TextEdit};
pub use path::FilePath;
pub use removal::{DeleteRequest, DeletedFile, MoveRequest, MovedFile};
pub use scope::Scope;
pub use update::{FileUpdate, UpdateOptions};
pub use version::{ETag, FileVersion, Precondition};
