//! What answers carry: the domain's objects as messages.

use bytes::Bytes;
use memtrove_core::conversations::{AccessLevel, Channel, Conversation, Entry, Membership, Transfer};
use memtrove_core::{ConversationId, UserId};
use memtrove_proto::json::{Struct, Value};
use memtrove_proto::v1;
use memtrove_service::Page;
use memtrove_service::conversations::SearchHit;
use uuid::Uuid;

/// An id: 16 bytes, most significant first.
pub(super) fn id(id: impl Into<Uuid>) -> Bytes {
    Bytes::copy_from_slice(id.into().as_bytes())
}

fn optional_id(given: Option<impl Into<Uuid>>) -> Bytes {
    given.map(id).unwrap_or_default()
}

/// The items of a page, and where the list goes on.
pub(super) fn page<T, U>(page: Page<T>, convert: impl FnMut(T) -> U) -> (Vec<U>, Option<v1::PageInfo>) {
    let Page { data, after } = page.map(convert);
    (data, Some(info(after, None)))
}

/// Where a list goes on.
pub(super) fn info(next: Option<String>, previous: Option<String>) -> v1::PageInfo {
    v1::PageInfo {
        next_page_token: next.unwrap_or_default(),
        previous_page_token: previous.unwrap_or_default(),
    }
}

pub(super) fn access_level(level: AccessLevel) -> v1::AccessLevel {
    match level {
        AccessLevel::Owner => v1::AccessLevel::Owner,
        AccessLevel::Manager => v1::AccessLevel::Manager,
        AccessLevel::Writer => v1::AccessLevel::Writer,
        AccessLevel::Reader => v1::AccessLevel::Reader,
    }
}

pub(super) fn summary(conversation: Conversation) -> v1::ConversationSummary {
    v1::ConversationSummary {
        id: id(conversation.id),
        title: conversation.title.unwrap_or_default(),
        owner_user_id: conversation.owner_user_id.0,
        created_at: conversation.created_at.to_string(),
        updated_at: conversation.updated_at.to_string(),
        last_message_preview: conversation.last_message_preview.unwrap_or_default(),
        access_level: access_level(conversation.access_level).into(),
    }
}

pub(super) fn conversation(conversation: Conversation) -> v1::Conversation {
    v1::Conversation {
        id: id(conversation.id),
        title: conversation.title.unwrap_or_default(),
        owner_user_id: conversation.owner_user_id.0,
        created_at: conversation.created_at.to_string(),
        updated_at: conversation.updated_at.to_string(),
        last_message_preview: conversation.last_message_preview.unwrap_or_default(),
        access_level: access_level(conversation.access_level).into(),
        forked_at_entry_id: optional_id(conversation.forked_at_entry_id),
        forked_at_conversation_id: optional_id(conversation.forked_at_conversation_id),
        metadata: None,
    }
}

/// With what was noted at its creation; only reading one by its id tells that.
pub(super) fn conversation_with_metadata(found: Conversation) -> v1::Conversation {
    let metadata = Some(Struct::from_json(found.metadata.get()));
    v1::Conversation { metadata, ..conversation(found) }
}

pub(super) fn fork(fork: Conversation) -> v1::ConversationForkSummary {
    v1::ConversationForkSummary {
        conversation_id: id(fork.id),
        forked_at_entry_id: optional_id(fork.forked_at_entry_id),
        forked_at_conversation_id: optional_id(fork.forked_at_conversation_id),
        title: fork.title.unwrap_or_default(),
        created_at: fork.created_at.to_string(),
    }
}

pub(super) fn membership(conversation: ConversationId, member: Membership) -> v1::ConversationMembership {
    v1::ConversationMembership {
        conversation_id: id(conversation),
        user_id: member.user_id.0,
        access_level: access_level(member.access_level).into(),
        created_at: member.created_at.to_string(),
    }
}

pub(super) fn transfer(transfer: Transfer) -> v1::OwnershipTransfer {
    v1::OwnershipTransfer {
        id: id(transfer.id),
        conversation_id: id(transfer.conversation_id),
        conversation_title: transfer.conversation_title.unwrap_or_default(),
        from_user_id: transfer.from_user_id.0,
        to_user_id: transfer.to_user_id.0,
        created_at: transfer.created_at.to_string(),
    }
}

pub(super) fn entry(entry: Entry) -> v1::Entry {
    let channel = match entry.channel {
        Channel::History => v1::Channel::History,
        Channel::Memory => v1::Channel::Memory,
    };
    v1::Entry {
        id: id(entry.id),
        conversation_id: id(entry.conversation_id),
        user_id: entry.user_id.map_or_else(String::new, |UserId(user)| user),
        channel: channel.into(),
        epoch: entry.epoch.unwrap_or_default(),
        content_type: entry.content_type,
        content: Value::items_from_json(entry.content.get()),
        created_at: entry.created_at.to_string(),
    }
}

pub(super) fn search_result(hit: SearchHit) -> v1::SearchResult {
    v1::SearchResult {
        conversation_id: id(hit.conversation_id),
        conversation_title: hit.conversation_title.unwrap_or_default(),
        entry_id: id(hit.entry_id),
        score: hit.score as f32,
        highlights: hit.highlights.unwrap_or_default(),
        passage: hit.passage.unwrap_or_default(),
        entry: hit.entry.map(entry),
    }
}
