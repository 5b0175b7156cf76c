//! The files surface: one file per family of operations.

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

pub use assembly::{Assembled, AssembledFile, DroppedFile};
pub use audit::{AuditPage, AuditRecord, ListAudit, Reconstructed};
pub use documents::{FileList, Headers, ListFiles, Written};
pub use events::EventWritten;
pub use forget::Forgotten;
pub use removal::{Deleted, Moved};
pub use retention::RetentionReport;

use crate::quota::Kind;
use crate::{Context, Memories};
use memtrove_core::files::{Code, FileRole, ScopedCaller};
use memtrove_core::{Error, Result};
use serde_json::{Map, Value};
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

    /// Lets a caller in: its role, then its quota. Nothing of the request has been looked at.
    pub async fn admit(&self, caller: &ScopedCaller, role: FileRole) -> Result<()> {
        if !self.cx.settings.files_enabled {
            let message = "this build keeps no files in Azure: set files.provider = \"store\"";
            return Err(Error::refused(Code::AzureProviderNotEnabled, message));
        }
        caller.require(role)?;
        let kind = match role {
            FileRole::Reader | FileRole::Auditor => Kind::Read,
            FileRole::Writer => Kind::Write,
        };
        let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
        self.cx.quotas.spend(tenant, user, &caller.service, kind).await
    }

    /// Gives a writer back what it was charged if a cap refused the call in the end.
    fn refund_refused<T>(&self, caller: &ScopedCaller, result: Result<T>) -> Result<T> {
        if let Err(Error::QuotaExceeded(_)) = result {
            let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
            self.cx.quotas.refund(tenant, user, &caller.service, Kind::Write);
        }
        result
    }
}

/// The members of a body, which must be an object.
fn members(body: &Value) -> Result<&Map<String, Value>> {
    body.as_object().ok_or_else(|| Error::refused(Code::InvalidRequest, "the body must be a JSON object"))
}
