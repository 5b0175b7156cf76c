//! Retention, and forgetting a user.

use super::{ForgetReport, Scope};
use crate::{Client, Result, operations};
use memtrove_core::Timestamp;
use memtrove_wire::files::ForgetUserRequest;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What to keep: this many days of each.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retention {
    /// Days of events.
    pub events_days: u32,
    /// Days of audit records.
    pub audit_days: u32,
    /// Days of snapshots.
    pub snapshots_days: u32,
    /// Counted back from here; now unless said otherwise.
    pub as_of_utc: Option<Timestamp>,
}

/// What retention removed, and up to when.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RetentionReport {
    /// Events.
    pub events_deleted: u64,
    /// Audit records.
    pub audit_deleted: u64,
    /// Snapshots.
    pub snapshots_deleted: u64,
    /// Entries of the event index.
    pub search_documents_deleted: u64,
    /// Events before this went.
    pub cutoff_events_utc: Timestamp,
    /// Audit records before this went.
    pub cutoff_audit_utc: Timestamp,
    /// Snapshots before this went.
    pub cutoff_snapshots_utc: Timestamp,
    /// The numbers that the server changed, because fewer days of audit records may not be kept.
    #[serde(default)]
    pub adjusted: Vec<String>,
}

impl Client {
    /// Removes events and audit records that are older than this many days. Files stay. The server keeps audit records longer if
    /// it has to, and says so in `adjusted`.
    pub async fn apply_retention(&self, scope: &Scope, retention: Retention) -> Result<RetentionReport> {
        self.call(&operations::APPLY_RETENTION, &scope.names())?.json(&retention)?.patiently().receive().await
    }

    /// Forgets a user: files, events, audit trail, conversations, memories, everything.
    pub async fn forget_user(&self, scope: &Scope) -> Result<ForgetReport> {
        self.call(&operations::FORGET_USER, &scope.names())?.patiently().receive().await
    }

    /// Forgets a user of the caller's tenant, whatever characters its id has.
    pub async fn forget_user_by_id(&self, user_id: impl Into<String>) -> Result<ForgetReport> {
        let request = ForgetUserRequest { user_id: user_id.into() };
        self.call(&operations::FORGET_USER_BY_ID, &[])?.json(&request)?.patiently().receive().await
    }
}
