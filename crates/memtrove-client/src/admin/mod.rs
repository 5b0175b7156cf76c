//! What administrators and auditors see and do. Each step can say why, for the audit log.

mod attachments;
mod conversations;
mod operating;

pub use attachments::ListAdminAttachments;
pub use conversations::{ListAdminConversations, ListAdminEntries};
pub use memtrove_wire::files::{Job, JobStarted, ReindexRequest};
pub use memtrove_wire::{
    AdminAttachment, AdminAttachmentSummary, AdminConversation, AdminConversationSummary, AdminEntry,
    AdminSearchRequest, AttachmentFilter, EvictRequest, StatsSummary, StatsSummaryCount, StatsSummaryGroups,
};
pub use operating::{Stats, StatsLine, StatsPoint, StatsRange};

use crate::call::Call;
use crate::operations::Operation;
use crate::{Client, Result};
use http::header::HeaderName;

const JUSTIFICATION: HeaderName = HeaderName::from_static("x-justification");

/// The administrative operations of a client.
#[derive(Debug, Clone)]
pub struct Admin {
    client: Client,
    justification: Option<String>,
}

impl Client {
    /// The administrative operations.
    pub fn admin(&self) -> Admin {
        Admin { client: self.clone(), justification: None }
    }
}

impl Admin {
    /// The same, with the reason that the audit log is to keep. Some services require one.
    pub fn because(&self, justification: impl Into<String>) -> Self {
        Self { justification: Some(justification.into()), ..self.clone() }
    }

    fn call(&self, operation: &'static Operation, names: &[&str]) -> Result<Call> {
        self.client.call(operation, names)?.header(JUSTIFICATION, self.justification.as_deref())
    }
}
