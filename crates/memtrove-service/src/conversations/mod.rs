//! The conversations surface: one file per family of operations.

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
pub use search::{AdminSearch, Explanation, SearchHit, SearchRequest, SearchType, WeightsRequest};
pub use sync::SyncOutcome;
pub use transfers::TransferRole;
pub(crate) use trees::Trees;

use crate::{Context, Memories};
use memtrove_core::conversations::{AccessLevel, MAX_TITLE_CHARS};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{ConversationId, Error, Resource, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::conversations::rows::{self, ConversationHead};
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
                open(tx, &caller, id, AccessLevel::Writer).map(drop)
            })
            .await
    }
}

/// Opens a conversation for a caller: it is there and live (else 404), the caller is a member (else 403) with at least
/// `needed` (else 403).
pub(crate) fn open(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
    needed: AccessLevel,
) -> Result<ConversationHead> {
    let head = rows::head(tx, caller.tenant(), &caller.user, id)?
        .filter(|head| !head.deleted)
        .ok_or_else(|| not_found(id))?;
    authorise(&head, needed)?;
    Ok(head)
}

fn authorise(head: &ConversationHead, needed: AccessLevel) -> Result<AccessLevel> {
    let level = head.access.ok_or_else(|| Error::forbidden("you are not a member of this conversation"))?;
    level.require(needed)?;
    Ok(level)
}

fn not_found(id: ConversationId) -> Error {
    Error::not_found(Resource::Conversation, id)
}

/// Tells the change feed what became of a conversation; `part` is the entry or the transfer it is about.
fn publish(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    kind: ChangeKind,
    user: Option<&UserId>,
    id: ConversationId,
    part: Option<Uuid>,
    at: Timestamp,
) -> Result<()> {
    let (user, part) = (user.map(UserId::as_str), part.map(|part| part.to_string()));
    let change = Change { kind, user, resource: &id.to_string(), version: part.as_deref() };
    changes::record(tx, tenant, at, &change)?;
    Ok(())
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
