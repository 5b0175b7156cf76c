//! The conversations surface: one file per family of operations.

pub mod access;
mod admin;
mod embeddings;
mod entries;
mod eviction;
mod forks;
pub mod import;
mod indexing;
pub(crate) mod ingest;
mod lifecycle;
mod search;
mod sharing;
mod sync;
mod transfers;
mod trees;

pub use admin::{AdminEntries, AdminList};
pub(crate) use entries::IDEMPOTENCY_MICROS;
pub use entries::{AppendRequest, ChannelFilter, EntryPage, EpochFilter, Idempotency, ListEntries};
pub use eviction::{EvictRequest, Eviction};
pub use forks::ForkPoint;
pub use indexing::IndexItem;
pub use lifecycle::{CreateConversation, ListConversations};
pub use search::{
    AdminSearch, Explanation, SearchHit, SearchPage, SearchRequest, SearchType, WeightsRequest,
};
pub(crate) use search::{SearchTurns, loading};
pub use sharing::MemberLevel;
pub use sync::SyncOutcome;
pub use transfers::{NewTransfer, TransferRole};
pub(crate) use trees::Trees;

use crate::{Context, Memories};
use access::{AsWriter, open};
use memtrove_core::conversations::MAX_TITLE_CHARS;
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{ConversationId, Error, Resource, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::{self, Change, ChangeKind};
use std::sync::Arc;
use uuid::Uuid;

/// The use cases of conversations.
#[derive(Clone)]
pub struct Conversations {
    cx: Arc<Context>,
    memories: Memories,
}

impl Conversations {
    pub(crate) fn new(cx: Arc<Context>, memories: Memories) -> Self {
        Self { cx, memories }
    }

    /// Whether the caller may write here; for transports that find a fault of their own in what it wants to write.
    pub async fn require_writer(&self, caller: &Caller, id: ConversationId) -> Result<()> {
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "require_writer", move |tx| {
                open::<AsWriter>(tx, &caller, id).map(drop)
            })
            .await
    }
}

fn not_found(id: ConversationId) -> Error {
    Error::not_found(Resource::Conversation, id)
}

/// What became of a conversation, as the change feed tells it.
struct ConversationChange<'a> {
    kind: ChangeKind,
    /// Who did it, or whom it is about.
    user: Option<&'a UserId>,
    id: ConversationId,
    /// The entry or the transfer it is about.
    part: Option<Uuid>,
}

impl ConversationChange<'_> {
    fn publish(&self, tx: &mut dyn Tx, tenant: &Tenant, at: Timestamp) -> Result<()> {
        let (user, part) = (self.user.map(UserId::as_str), self.part.map(|part| part.to_string()));
        let (kind, resource) = (self.kind, &self.id.to_string());
        changes::record(tx, tenant, at, &Change { kind, user, resource, version: part.as_deref() })?;
        Ok(())
    }
}

/// Tells the change feed what became of a whole conversation.
fn publish(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    kind: ChangeKind,
    user: Option<&UserId>,
    id: ConversationId,
    at: Timestamp,
) -> Result<()> {
    ConversationChange { kind, user, id, part: None }.publish(tx, tenant, at)
}

/// A title as it is stored: blank is none.
fn title(given: Option<String>) -> Result<Option<String>> {
    let Some(title) = given.filter(|title| !title.trim().is_empty()) else { return Ok(None) };
    text("title", &title, MAX_TITLE_CHARS)?;
    Ok(Some(title))
}

/// Checks what every text must fulfil: not too long, no NUL.
fn text(field: &str, value: &str, max_chars: usize) -> Result<()> {
    // Counting characters is only needed where there are more bytes than allowed characters.
    if value.len() > max_chars && value.chars().count() > max_chars {
        return Err(Error::invalid(field, format!("must have at most {max_chars} characters")));
    }
    if value.contains('\0') {
        return Err(Error::invalid(field, "must not contain NUL characters"));
    }
    Ok(())
}
