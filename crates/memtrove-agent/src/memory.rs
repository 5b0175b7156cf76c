//! The memory of an agent: a client, the policy of its slots, and what it asks for unless told otherwise.

use crate::{MemoryPolicy, SlotPolicy};
use memtrove_client::{
    Client, Error, EventDigest, EventQuery, FileEntry, ForgetReport, ListFiles, Result, Scope, Timestamp,
};
use std::sync::Arc;

/// What an [`AgentMemory`] asks for unless a call says otherwise. These are its own numbers, not the service's, so they
/// are always sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMemoryOptions {
    /// The most files of a turn.
    pub assemble_max_docs: u32,
    /// The most characters of all files of a turn.
    pub assemble_max_chars_total: u32,
    /// The most events of a recall.
    pub recall_top_k: u32,
}

impl Default for AgentMemoryOptions {
    fn default() -> Self {
        Self { assemble_max_docs: 8, assemble_max_chars_total: 40_000, recall_top_k: 8 }
    }
}

/// The memory of an agent. Clones are cheap and share their connections.
///
/// ```no_run
/// # use memtrove_agent::{AgentMemory, Scope, WriteFileOptions};
/// # async fn example(client: memtrove_client::Client) -> memtrove_agent::Result<()> {
/// let memory = AgentMemory::new(client);
/// let alice = Scope::new("acme", "alice");
/// memory.write_file(&alice, "profile.md", "Likes tea.", WriteFileOptions::default()).await?;
/// let profile = memory.load_file(&alice, "profile.md").await?;
/// assert_eq!(profile.content, "Likes tea.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AgentMemory {
    pub(crate) client: Client,
    policy: Arc<MemoryPolicy>,
    /// What is wrong with the policy. It is looked at once, and reported by every use of a slot.
    fault: Option<Arc<str>>,
    pub(crate) options: AgentMemoryOptions,
}

/// A search for events; every member may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recall {
    /// Words to find in digests and keywords.
    pub query: Option<String>,
    /// The most events; [`AgentMemoryOptions::recall_top_k`] unless said otherwise.
    pub top_k: Option<u32>,
    /// Only of this service.
    pub service_id: Option<String>,
    /// Only of this kind of source.
    pub source_type: Option<String>,
    /// Only of this project.
    pub project_id: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
}

impl AgentMemory {
    /// A memory without slots.
    pub fn new(client: Client) -> Self {
        Self { client, policy: Arc::default(), fault: None, options: AgentMemoryOptions::default() }
    }

    /// The same with the slots of a policy. Slots that cannot be told apart fail whatever uses a slot.
    pub fn with_policy(self, policy: impl Into<Arc<MemoryPolicy>>) -> Self {
        let policy = policy.into();
        let fault = policy.check().err().map(|error| error.to_string().into());
        Self { policy, fault, ..self }
    }

    /// The same, asking for other amounts.
    pub fn with_options(self, options: AgentMemoryOptions) -> Self {
        Self { options, ..self }
    }

    /// The client it works with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its slots.
    pub fn policy(&self) -> &MemoryPolicy {
        &self.policy
    }

    /// The slots, if the policy makes sense.
    pub(crate) fn slots(&self) -> Result<&[SlotPolicy]> {
        match &self.fault {
            None => Ok(&self.policy.slots),
            Some(fault) => Err(Error::invalid(&**fault)),
        }
    }

    /// A slot, if the policy makes sense.
    pub(crate) fn slot(&self, slot_id: &str) -> Result<&SlotPolicy> {
        self.slots()?;
        self.policy.named(slot_id)
    }

    /// What it asks for unless told otherwise.
    pub fn options(&self) -> &AgentMemoryOptions {
        &self.options
    }

    /// Finds events by words, best first.
    pub async fn recall(
        &self,
        scope: &Scope,
        query: &str,
        top_k: impl Into<Option<u32>>,
    ) -> Result<Vec<EventDigest>> {
        let top_k = top_k.into();
        self.recall_with(scope, Recall { query: Some(query.to_owned()), top_k, ..Recall::default() }).await
    }

    /// Finds events by words and filters, best first.
    pub async fn recall_with(&self, scope: &Scope, recall: Recall) -> Result<Vec<EventDigest>> {
        let query = EventQuery {
            query: recall.query,
            service_id: recall.service_id,
            source_type: recall.source_type,
            project_id: recall.project_id,
            from: recall.from,
            to: recall.to,
            top_k: Some(recall.top_k.unwrap_or(self.options.recall_top_k)),
        };
        self.client.search_events(scope, query).await
    }

    /// Notes that something happened. An event that names no user belongs to the scope.
    pub async fn remember(&self, scope: &Scope, mut event: EventDigest) -> Result<()> {
        if event.tenant_id.is_empty() && event.user_id.is_empty() {
            event.tenant_id.clone_from(&scope.tenant_id);
            event.user_id.clone_from(&scope.user_id);
        }
        self.client.write_event(scope, &event).await
    }

    /// Lists files, by lower-cased path; the first hundred unless told otherwise.
    pub async fn list_files(
        &self,
        scope: &Scope,
        prefix: impl Into<Option<&str>>,
        limit: impl Into<Option<u32>>,
    ) -> Result<Vec<FileEntry>> {
        let request = ListFiles {
            prefix: prefix.into().map(str::to_owned),
            limit: Some(limit.into().unwrap_or(100)),
            after: None,
        };
        Ok(self.client.list_files(scope, request).await?.files)
    }

    /// Forgets everything about the user.
    pub async fn forget_user(&self, scope: &Scope) -> Result<ForgetReport> {
        self.client.forget_user(scope).await
    }
}
