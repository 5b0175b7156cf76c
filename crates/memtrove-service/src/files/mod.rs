//! The files surface: one file per family of operations.

mod admission;
mod assembly;
mod audit;
mod documents;
mod events;
mod forget;
mod mutation;
mod reindex;
mod removal;
mod replay;
mod retention;

pub(crate) use reindex::work as work_on_job;

pub use admission::{Admitted, Auditor, Forgetter, Reader, Role, SeesFiles, Writer};
pub use assembly::{Assemble, AssembleMemories, Assembled, AssembledFile, DroppedFile};
pub use audit::{AuditPage, AuditRecord, ChangeId, ListAudit, Reconstruct, Reconstructed, WantedVersion};
pub use documents::{FileList, ListFiles, PatchFile, PutFile, WrittenFile};
pub use events::{EventWritten, WriteEvent};
pub use forget::Forgotten;
pub use removal::{DeleteFile, Deleted, MoveFile, Moved};
pub use retention::RetentionReport;

use crate::{Context, Memories};
use std::sync::Arc;

/// The files surface.
#[derive(Clone)]
pub struct Files {
    cx: Arc<Context>,
    memories: Memories,
}

impl Files {
    pub(crate) fn new(cx: Arc<Context>, memories: Memories) -> Self {
        Self { cx, memories }
    }
}
