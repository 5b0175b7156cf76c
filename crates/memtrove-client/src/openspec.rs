//! The OpenSpec knowledge protocol: the same memories in other words, and the stream of what happens to them.

use crate::sse::{self, AtEnd, Event, LAST_EVENT_ID};
use crate::{Client, Error, Result, operations};
use futures_util::{Stream, TryStreamExt, future};
pub use memtrove_wire::openspec::*;
use serde_json::Value;
use uuid::Uuid;

/// What a stream is to tell.
#[derive(Debug, Clone, Default)]
pub struct StreamKnowledge {
    /// Of what kind.
    pub subject: KnowledgeSubject,
    /// Only of these layer types.
    pub types: Vec<String>,
    /// Only with at least one of these tags.
    pub tags: Vec<String>,
    /// The scope.
    pub identifiers: KnowledgeIdentifiers,
    /// Only what came after this event.
    pub last_event_id: Option<i64>,
}

/// The kinds of what a stream can tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KnowledgeSubject {
    /// Which entries are made, changed and deleted.
    #[default]
    Updates,
    /// What the life of entries comes to: fading, archiving, promotion.
    Notifications,
    /// The results of this query, one by one. The stream ends with the last.
    Query(String),
}

/// Something that a stream tells.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeEvent {
    /// Its number, where it has one.
    pub id: Option<i64>,
    /// `ready` or `reset`; `created`, `updated`, `deleted`; `decayed`, `archived`, `restored`, `promoted`, `consolidated`,
    /// `expired`; or `result`.
    pub name: String,
    /// What it says, as its name has it.
    pub data: Value,
}

impl KnowledgeEvent {
    fn read(event: Event) -> Result<Self> {
        let data = serde_json::from_str(&event.data)
            .map_err(|error| Error::decode(operations::STREAM_KNOWLEDGE.id, error, event.data.as_bytes()))?;
        Ok(Self { id: event.id.and_then(|id| id.parse().ok()), name: event.name, data })
    }
}

impl Client {
    /// What the provider says about itself.
    pub async fn discover_knowledge(&self) -> Result<KnowledgeProvider> {
        let found: KnowledgeDiscovery = self.call(&operations::DISCOVER_KNOWLEDGE, &[])?.receive().await?;
        Ok(found.provider)
    }

    /// Makes an entry.
    pub async fn create_knowledge(&self, request: WriteKnowledgeRequest) -> Result<WrittenKnowledge> {
        self.call(&operations::CREATE_KNOWLEDGE, &[])?.json(&request)?.receive().await
    }

    /// Reads an entry.
    pub async fn get_knowledge(&self, id: Uuid) -> Result<KnowledgeEntry> {
        let one: OneKnowledgeEntry =
            self.call(&operations::GET_KNOWLEDGE, &[&id.to_string()])?.receive().await?;
        Ok(one.entry)
    }

    /// Reads an entry unless it is still at this version.
    pub async fn get_knowledge_if_changed(&self, id: Uuid, seen: i64) -> Result<Option<KnowledgeEntry>> {
        let call = self.call(&operations::GET_KNOWLEDGE, &[&id.to_string()])?.unless_version(seen)?;
        Ok(call.receive_changed::<OneKnowledgeEntry>().await?.map(|one| one.entry))
    }

    /// Replaces an entry; if a version is given, only that one.
    pub async fn replace_knowledge(
        &self,
        id: Uuid,
        request: WriteKnowledgeRequest,
        version: Option<i64>,
    ) -> Result<WrittenKnowledge> {
        self.call(&operations::REPLACE_KNOWLEDGE, &[&id.to_string()])?
            .version(version)?
            .json(&request)?
            .receive()
            .await
    }

    /// Deletes an entry; `hard` leaves no trace.
    pub async fn delete_knowledge(
        &self,
        id: Uuid,
        hard: bool,
        version: Option<i64>,
    ) -> Result<DeletedKnowledge> {
        self.call(&operations::DELETE_KNOWLEDGE, &[&id.to_string()])?
            .query("hard_delete", hard.then_some(true))
            .version(version)?
            .receive()
            .await
    }

    /// What is known about an entry, without what it says.
    pub async fn knowledge_metadata(&self, id: Uuid, include_custom: bool) -> Result<KnowledgeEntryMetadata> {
        self.call(&operations::KNOWLEDGE_METADATA, &[&id.to_string()])?
            .query("include_custom", Some(include_custom))
            .receive()
            .await
    }

    /// Finds entries, best first.
    pub async fn query_knowledge(&self, request: KnowledgeQueryRequest) -> Result<KnowledgeResults> {
        self.call(&operations::QUERY_KNOWLEDGE, &[])?.json(&request)?.receive().await
    }

    /// Makes, replaces or deletes many entries.
    pub async fn batch_knowledge(&self, request: KnowledgeBatchRequest) -> Result<KnowledgeBatch> {
        self.call(&operations::BATCH_KNOWLEDGE, &[])?.json(&request)?.receive().await
    }

    /// Tells what happens to entries, or the results of a query.
    ///
    /// The first event is `ready`. A stream of updates or notifications does not end: a connection that breaks is replaced,
    /// and it goes on behind what was told; `reset` says that something in between is not kept any more.
    pub fn stream_knowledge(
        &self,
        request: StreamKnowledge,
    ) -> impl Stream<Item = Result<KnowledgeEvent>> + Send + use<> {
        let client = self.clone();
        let at_end = match request.subject {
            KnowledgeSubject::Query(_) => AtEnd::Stop,
            KnowledgeSubject::Updates | KnowledgeSubject::Notifications => AtEnd::Resume,
        };
        let after = request.last_event_id.map(|id| id.to_string());
        let open = move |seen: Option<&str>| {
            let (subject, query) = match &request.subject {
                KnowledgeSubject::Updates => ("updates", None),
                KnowledgeSubject::Notifications => ("notifications", None),
                KnowledgeSubject::Query(query) => ("query", Some(query)),
            };
            let listed = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
            let identifiers = &request.identifiers;
            client
                .call(&operations::STREAM_KNOWLEDGE, &[])?
                .query("type", Some(subject))
                .query("query", query)
                .query("types", listed(&request.types))
                .query("tags", listed(&request.tags))
                .query("agent_id", identifiers.agent_id.as_ref())
                .query("user_id", identifiers.user_id.as_ref())
                .query("session_id", identifiers.session_id.as_ref())
                .query("project_id", identifiers.project_id.as_ref())
                .query("team_id", identifiers.team_id.as_ref())
                .query("org_id", identifiers.org_id.as_ref())
                .query("company_id", identifiers.company_id.as_ref())
                .header(LAST_EVENT_ID, seen)
        };
        sse::follow(self.stream_manner(at_end), after, open, |_| false)
            .and_then(|event| future::ready(KnowledgeEvent::read(event)))
    }
}
