//! What a deployment decides about the use cases.

use crate::quota::QuotaSettings;
use crate::recorder::RecorderSettings;
use memtrove_blobs::Blobs;
use memtrove_blobs::fetch::Fetcher;
use memtrove_core::memories::{Kind, Layer, Rules};
use memtrove_core::recall::fusion::Weights;
use memtrove_recall::embed::EmbeddingConfig;
use std::collections::HashMap;
use std::fmt::{Debug, Formatter};
use std::time::Duration;
use zeroize::Zeroizing;

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
    /// Audit records of this many days stay, unless an admin says why not.
    pub audit_min_days: u32,
    /// How often that is done, from the start on.
    pub interval: Duration,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            events_days: None,
            audit_days: None,
            audit_min_days: 365,
            interval: Duration::from_secs(24 * 3600),
        }
    }
}

/// How `auto` searches conversations where it can search by words and by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoMode {
    /// By both, ranked together.
    #[default]
    Hybrid,
    /// By meaning; by words only where nothing was found so.
    Fallback,
}

/// Decisions about the search of conversations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchSettings {
    /// Search by meaning is on, where there is something that makes vectors.
    pub semantic: bool,
    /// `auto` does not return what is less similar than this and has no word in common with the query. As the model has it
    /// unless said otherwise; 0 returns everything.
    pub min_score: Option<f64>,
    /// See [`AutoMode`].
    pub auto_mode: AutoMode,
    /// Whether it counts who said something when a query asks for what somebody said.
    pub actor: bool,
    /// What each kind of evidence counts.
    pub weights: Weights,
    /// How long a search may read what is not in memory. Then it is answered with what it has.
    pub budget: Duration,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            semantic: true,
            min_score: None,
            auto_mode: AutoMode::default(),
            actor: true,
            weights: Weights::default(),
            budget: Duration::from_secs(1),
        }
    }
}

/// Decisions about the memories surface.
#[derive(Debug, Clone, PartialEq)]
pub struct MemorySettings {
    /// How requests are read, and the defaults of what they leave out.
    pub rules: Rules,
    /// Who may write in a shared layer, by role values; a layer that is not named is open to everybody.
    pub write_roles: HashMap<Layer, Vec<String>>,
    /// Whether `agentId` must be the API-key client.
    pub bind_agent_id: bool,
    /// How long entries of a kind are kept at most.
    pub retention: HashMap<Kind, Duration>,
    /// How often entries that have faded are looked for, where they fade.
    pub decay_interval: Duration,
    /// How often what has expired is swept away.
    pub sweep_interval: Duration,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            write_roles: HashMap::new(),
            bind_agent_id: false,
            retention: HashMap::new(),
            decay_interval: Duration::from_secs(24 * 3600),
            sweep_interval: Duration::from_secs(60),
        }
    }
}

/// Decisions about attachments.
#[derive(Clone)]
pub struct AttachmentSettings {
    /// Where their bytes are kept; without a place there are no attachments.
    pub blobs: Option<Blobs>,
    /// What fetches files that callers have on the web; without one that is refused.
    pub fetcher: Option<Fetcher>,
    /// The largest file, in bytes.
    pub max_bytes: u64,
    /// How long a file is kept unless its uploader says so or an entry refers to it.
    pub default_expires_in: Duration,
    /// The longest that its uploader may say.
    pub max_expires_in: Duration,
    /// How long an upload lives without a sign of life.
    pub upload_expires_in: Duration,
    /// How often it gives one.
    pub upload_refresh: Duration,
    /// How often what has expired is swept away.
    pub cleanup_interval: Duration,
    /// How long links to files are good for.
    pub download_url_expires_in: Duration,
    /// What links are signed with; unless given, a key of the store, or one that is derived from the key that seals it.
    pub download_url_secret: Option<Zeroizing<Vec<u8>>>,
    /// Whether readers are sent to the object store, where it can sign links.
    pub direct_download: bool,
}

impl Default for AttachmentSettings {
    fn default() -> Self {
        Self {
            blobs: None,
            fetcher: None,
            max_bytes: 10 * 1024 * 1024,
            default_expires_in: Duration::from_secs(3600),
            max_expires_in: Duration::from_secs(24 * 3600),
            upload_expires_in: Duration::from_secs(60),
            upload_refresh: Duration::from_secs(30),
            cleanup_interval: Duration::from_secs(300),
            download_url_expires_in: Duration::from_secs(300),
            download_url_secret: None,
            direct_download: false,
        }
    }
}

impl Debug for AttachmentSettings {
    /// Without the secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachmentSettings")
            .field("blobs", &self.blobs)
            .field("max_bytes", &self.max_bytes)
            .field("direct_download", &self.direct_download)
            .finish_non_exhaustive()
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
    /// How often the worker looks at the queue when it is not woken.
    pub task_interval: Duration,
    /// How many tasks are claimed at once.
    pub task_batch_size: usize,
    /// After so long a claim counts as abandoned.
    pub task_stale_claim: Duration,
    /// Where several nodes share a store: how long after one stops answering another takes over what it did for all. Far more than
    /// their clocks may be apart.
    pub lease: Duration,
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
    /// See [`SearchSettings`].
    pub search: SearchSettings,
    /// What makes vectors of texts.
    pub embedding: EmbeddingConfig,
    /// How many bytes of memory the indexes of memories may take, and those of conversations as many again.
    pub index_memory: usize,
    /// Scopes of memories with more entries than this are searched by the database where it can, instead of in the memory of
    /// every node; 0 is never.
    pub database_index_above: usize,
    /// See [`MemorySettings`].
    pub memories: MemorySettings,
    /// See [`RecorderSettings`].
    pub recorder: RecorderSettings,
    /// See [`AttachmentSettings`].
    pub attachments: AttachmentSettings,
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
            lease: Duration::from_secs(15),
            changes_retention: Duration::from_secs(7 * 24 * 3600),
            quotas: QuotaSettings::default(),
            files_enabled: true,
            idempotency_retention: Duration::from_secs(24 * 3600),
            retention: RetentionSettings::default(),
            search: SearchSettings::default(),
            embedding: EmbeddingConfig::default(),
            index_memory: 1 << 30,
            database_index_above: 20_000,
            memories: MemorySettings::default(),
            recorder: RecorderSettings::default(),
            attachments: AttachmentSettings::default(),
        }
    }
}
