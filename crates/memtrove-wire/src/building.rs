//! Requests with what they need, for those who send them. Whatever else a request can say is a member to set.

use crate::memories::{
    AddFactRequest, AddMemoryRequest, FactStatement, ListMemoriesRequest, MemoryIdentifiers, MemoryLayer,
    QueryFactsRequest, SearchMemoriesRequest,
};
use crate::{Channel, CreateConversationRequest, CreateEntryRequest, SearchConversationsRequest};
use memtrove_core::Json;
use serde_json::{Value, json};

impl CreateConversationRequest {
    /// A conversation with a title.
    pub fn titled(title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..Self::default() }
    }
}

impl CreateEntryRequest {
    /// A message of the transcript: `USER` or `AI`, and what was said.
    pub fn message(role: &str, text: impl Into<String>) -> Self {
        Self::history([json!({"role": role, "text": text.into()})])
    }

    /// Messages of the transcript, as the history format has them.
    pub fn history(content: impl IntoIterator<Item = Value>) -> Self {
        Self::of(Channel::History, "history", content)
    }

    /// An agent's own state, in whatever format.
    pub fn memory(content_type: impl Into<String>, content: impl IntoIterator<Item = Value>) -> Self {
        Self::of(Channel::Memory, content_type, content)
    }

    fn of(
        channel: Channel,
        content_type: impl Into<String>,
        content: impl IntoIterator<Item = Value>,
    ) -> Self {
        let content = Value::Array(content.into_iter().collect());
        Self {
            channel: Some(channel),
            content_type: Some(content_type.into()),
            content: Some(Json::stored(content.to_string())),
            ..Self::default()
        }
    }
}

impl SearchConversationsRequest {
    /// A search for this.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: Some(query.into()), ..Self::default() }
    }
}

impl MemoryIdentifiers {
    /// A user.
    pub fn user(user: impl Into<String>) -> Self {
        Self { user_id: Some(user.into()), ..Self::default() }
    }

    /// A session of a user.
    pub fn session(user: impl Into<String>, session: impl Into<String>) -> Self {
        Self { session_id: Some(session.into()), ..Self::user(user) }
    }

    /// What an agent knows of a user.
    pub fn agent(agent: impl Into<String>, user: impl Into<String>) -> Self {
        Self { agent_id: Some(agent.into()), ..Self::user(user) }
    }

    /// A project.
    pub fn project(project: impl Into<String>) -> Self {
        Self { project_id: Some(project.into()), ..Self::default() }
    }

    /// A team.
    pub fn team(team: impl Into<String>) -> Self {
        Self { team_id: Some(team.into()), ..Self::default() }
    }
}

impl AddMemoryRequest {
    /// Something to remember, and of whom.
    pub fn new(layer: MemoryLayer, identifiers: MemoryIdentifiers, content: impl Into<String>) -> Self {
        Self {
            content: Some(content.into()),
            layer: Some(layer),
            identifiers: Some(identifiers),
            ..Self::default()
        }
    }
}

impl SearchMemoriesRequest {
    /// A search for this in every layer that the identifiers open.
    pub fn new(identifiers: MemoryIdentifiers, query: impl Into<String>) -> Self {
        Self { query: Some(query.into()), identifiers: Some(identifiers), ..Self::default() }
    }
}

impl ListMemoriesRequest {
    /// A list of one scope.
    pub fn new(layer: MemoryLayer, identifiers: MemoryIdentifiers) -> Self {
        Self { layer: Some(layer), identifiers: Some(identifiers), ..Self::default() }
    }
}

impl FactStatement {
    /// A statement that is certain.
    pub fn new(
        fact_type: impl Into<String>,
        subject: impl Into<String>,
        predicate: impl Into<String>,
        object: impl Into<String>,
    ) -> Self {
        Self {
            fact_type: fact_type.into(),
            subject: subject.into(),
            predicate: predicate.into(),
            object: object.into(),
            confidence: None,
        }
    }
}

impl AddFactRequest {
    /// A fact to state, and of whom.
    pub fn new(layer: MemoryLayer, identifiers: MemoryIdentifiers, fact: FactStatement) -> Self {
        Self {
            layer: Some(layer),
            identifiers: Some(identifiers),
            fact_type: Some(fact.fact_type),
            subject: Some(fact.subject),
            predicate: Some(fact.predicate),
            object: Some(fact.object),
            confidence: fact.confidence,
            ..Self::default()
        }
    }
}

impl QueryFactsRequest {
    /// All facts in every layer that the identifiers open.
    pub fn new(identifiers: MemoryIdentifiers) -> Self {
        Self { identifiers: Some(identifiers), ..Self::default() }
    }
}
