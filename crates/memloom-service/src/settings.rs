//! What a deployment decides about the use cases.

use crate::quota::QuotaSettings;
use std::time::Duration;

/// Whether entries without an `indexedContent` are searchable by their own text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoDerive {
    /// Yes.
    Text,
    /// No: only what an agent or an indexer supplies is searchable.
    Off,
}

/// How long the files surface keeps what it need not keep for ever. `None` keeps it until somebody deletes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Events whose time is longer ago are deleted.
    pub events_days: Option<u32>,
    /// Audit records that are older are deleted.
    pub audit_days: Option<u32>,
    /// How often that is done, from the start on.
    pub interval: Duration,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self { events_days: None, audit_days: None, interval: Duration::from_secs(24 * 3600) }
    }
}

/// Decisions of the deployment. The defaults are those of the contract.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Managers may delete a tree, not only its owner.
    pub managers_may_delete: bool,
    /// Managers may make, change and remove managers.
    pub managers_may_grant_manager: bool,
    /// Admin calls must say why.
    pub require_justification: bool,
    /// Full-text search is on.
    pub fulltext: bool,
    /// The language whose words are stemmed.
    pub language: String,
    /// See [`AutoDerive`].
    pub auto_derive: AutoDerive,
    /// The largest content of one entry, in bytes of JSON.
    pub max_content_bytes: usize,
    /// How many trees one batch of an eviction removes.
    pub eviction_batch_size: usize,
    /// How long an eviction pauses between batches.
    pub eviction_batch_delay: Duration,
    /// The first pause after a failed task; it doubles with every failure, up to six hours.
    pub task_retry_delay: Duration,
    /// How often the queue is looked at when nobody wakes the worker.
    pub task_interval: Duration,
    /// How many tasks are claimed at once.
    pub task_batch_size: usize,
    /// After so long a claim counts as abandoned.
    pub task_stale_claim: Duration,
    /// How long the change feed keeps what it told.
    pub changes_retention: Duration,
    /// How much users and services may ask of the files surface.
    pub quotas: QuotaSettings,
    /// Whether the provider that files are to be kept with is in this build.
    pub files_enabled: bool,
    /// How long the files surface remembers an `Idempotency-Key`.
    pub idempotency_retention: Duration,
    /// See [`RetentionSettings`].
    pub retention: RetentionSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            managers_may_delete: false,
            managers_may_grant_manager: true,
            require_justification: false,
            fulltext: true,
            language: "english".into(),
            auto_derive: AutoDerive::Text,
            max_content_bytes: 16 * 1024 * 1024,
            eviction_batch_size: 1000,
            eviction_batch_delay: Duration::from_millis(100),
            task_retry_delay: Duration::from_secs(600),
            task_interval: Duration::from_secs(60),
            task_batch_size: 100,
            task_stale_claim: Duration::from_secs(300),
            changes_retention: Duration::from_secs(7 * 24 * 3600),
            quotas: QuotaSettings::default(),
            files_enabled: true,
            idempotency_retention: Duration::from_secs(24 * 3600),
            retention: RetentionSettings::default(),
        }
    }
}
