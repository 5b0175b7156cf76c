//! What callers get.

use crate::{AccessLevel, Channel};
use memtrove_core::conversations as domain;
use memtrove_core::{ClientId, ConversationId, EntryId, Json, Timestamp, TransferId, UserId};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::io::Write as _;
use utoipa::ToSchema;

/// A part of a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items.
    pub data: Vec<T>,
    /// What to send as `after` for the next part; null on the last one.
    pub after_cursor: Option<String>,
}

/// A part of what a search found, best first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPage<E> {
    /// The results.
    pub data: Vec<SearchResult<E>>,
    /// What to send as `after` for the next part; null on the last one.
    pub after_cursor: Option<String>,
    /// `true` where not everything could be looked at in time, so that something better may be missing; else not there. What is
    /// missing is read meanwhile: the same search again finds it soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}

/// A part of a list of entries, oldest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesPage<T> {
    /// The entries.
    pub data: Vec<T>,
    /// What to send as `after` for newer entries; null where there are none.
    #[schema(value_type = Option<Uuid>)]
    pub after_cursor: Option<EntryId>,
    /// What to send as `before` for older entries; only there when `tail` or `before` was used.
    #[schema(value_type = Option<Uuid>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before_cursor: Option<Option<EntryId>>,
}

impl EntriesPage<Entry> {
    /// The page as JSON, the same as its `Serialize` gives. Pages of entries are what agents read most, and most of the
    /// cost of encoding one was looking for characters to escape in names and ids that have none.
    pub fn to_json(&self) -> Vec<u8> {
        let size: usize = self.data.iter().map(|entry| entry.content.get().len() + 320).sum();
        let mut out = Vec::with_capacity(size + 128);
        out.extend_from_slice(b"{\"data\":[");
        for (i, entry) in self.data.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            entry.write_json(&mut out);
        }
        out.extend_from_slice(b"],\"afterCursor\":");
        write_cursor(&mut out, self.after_cursor);
        if let Some(before) = self.before_cursor {
            out.extend_from_slice(b",\"beforeCursor\":");
            write_cursor(&mut out, before);
        }
        out.push(b'}');
        out
    }
}

impl Entry {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":\"");
        write_uuid(out, self.id.0);
        out.extend_from_slice(b"\",\"conversationId\":\"");
        write_uuid(out, self.conversation_id.0);
        if let Some(user) = &self.user_id {
            out.extend_from_slice(b"\",\"userId\":");
            write_text(out, user.as_str());
            out.extend_from_slice(b",\"channel\":\"");
        } else {
            out.extend_from_slice(b"\",\"channel\":\"");
        }
        out.extend_from_slice(self.channel.as_str().as_bytes());
        out.push(b'"');
        // Writing to a Vec cannot fail, here and below.
        if let Some(epoch) = self.epoch {
            let _ = write!(out, ",\"epoch\":{epoch}");
        }
        out.extend_from_slice(b",\"contentType\":");
        write_text(out, &self.content_type);
        out.extend_from_slice(b",\"content\":");
        out.extend_from_slice(self.content.get().as_bytes());
        let _ = write!(out, ",\"createdAt\":\"{}\"}}", self.created_at);
    }
}

fn write_cursor(out: &mut Vec<u8>, cursor: Option<EntryId>) {
    match cursor {
        None => out.extend_from_slice(b"null"),
        Some(id) => {
            out.push(b'"');
            write_uuid(out, id.0);
            out.push(b'"');
        }
    }
}

fn write_uuid(out: &mut Vec<u8>, id: uuid::Uuid) {
    out.extend_from_slice(id.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).as_bytes());
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

macro_rules! conversation_shape {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $from:expr),* $(,)? }) => {
        $(#[$doc])*
        #[skip_serializing_none]
        #[derive(Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Its id.
            #[schema(value_type = Uuid)]
            pub id: ConversationId,
            /// Its title, given or derived from the first message.
            pub title: Option<String>,
            /// The owner of the whole tree.
            #[schema(value_type = String)]
            pub owner_user_id: UserId,
            /// When it was made.
            #[schema(value_type = String, format = DateTime)]
            pub created_at: Timestamp,
            /// When its history or title changed last.
            #[schema(value_type = String, format = DateTime)]
            pub updated_at: Timestamp,
            /// The beginning of its newest message.
            pub last_message_preview: Option<String>,
            /// What the caller may do.
            pub access_level: AccessLevel,
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl From<domain::Conversation> for $name {
            fn from(conversation: domain::Conversation) -> Self {
                $(let $field = { let from: fn(&domain::Conversation) -> $type = $from; from(&conversation) };)*
                Self {
                    id: conversation.id,
                    title: conversation.title,
                    owner_user_id: conversation.owner_user_id,
                    created_at: conversation.created_at,
                    updated_at: conversation.updated_at,
                    last_message_preview: conversation.last_message_preview,
                    access_level: conversation.access_level.into(),
                    $($field,)*
                }
            }
        }
    };
}

conversation_shape!(
    /// A conversation in a list.
    ConversationSummary {}
);

conversation_shape!(
    /// A conversation.
    Conversation {
        /// The last entry it shares with its parent.
        #[schema(value_type = Option<Uuid>)]
        forked_at_entry_id: Option<EntryId> = |c| c.forked_at_entry_id,
        /// The conversation it was forked from.
        #[schema(value_type = Option<Uuid>)]
        forked_at_conversation_id: Option<ConversationId> = |c| c.forked_at_conversation_id,
        /// What its creator noted; only where one conversation is read, and only when there is any.
        #[schema(value_type = Option<Object>)]
        metadata: Option<Json> = |_| None,
    }
);

impl Conversation {
    /// The conversation with what its creator noted.
    pub fn with_metadata(conversation: domain::Conversation) -> Self {
        let metadata = Some(conversation.metadata.clone()).filter(|metadata| metadata.get() != "{}");
        Self { metadata, ..conversation.into() }
    }
}

conversation_shape!(
    /// A conversation in an admin's list.
    AdminConversationSummary {
        /// When its tree was deleted, if it was.
        #[schema(value_type = Option<String>, format = DateTime)]
        deleted_at: Option<Timestamp> = |c| c.deleted_at,
    }
);

conversation_shape!(
    /// A conversation, as an admin sees it.
    AdminConversation {
        /// When its tree was deleted, if it was.
        #[schema(value_type = Option<String>, format = DateTime)]
        deleted_at: Option<Timestamp> = |c| c.deleted_at,
        /// The last entry it shares with its parent.
        #[schema(value_type = Option<Uuid>)]
        forked_at_entry_id: Option<EntryId> = |c| c.forked_at_entry_id,
        /// The conversation it was forked from.
        #[schema(value_type = Option<Uuid>)]
        forked_at_conversation_id: Option<ConversationId> = |c| c.forked_at_conversation_id,
    }
);

/// A branch of a tree.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationForkSummary {
    /// The conversation.
    #[schema(value_type = Uuid)]
    pub conversation_id: ConversationId,
    /// The last entry it shares with its parent.
    #[schema(value_type = Option<Uuid>)]
    pub forked_at_entry_id: Option<EntryId>,
    /// The conversation it was forked from; the root has none.
    #[schema(value_type = Option<Uuid>)]
    pub forked_at_conversation_id: Option<ConversationId>,
    /// Its title.
    pub title: Option<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl From<domain::Conversation> for ConversationForkSummary {
    fn from(conversation: domain::Conversation) -> Self {
        Self {
            conversation_id: conversation.id,
            forked_at_entry_id: conversation.forked_at_entry_id,
            forked_at_conversation_id: conversation.forked_at_conversation_id,
            title: conversation.title,
            created_at: conversation.created_at,
        }
    }
}

macro_rules! entry_shape {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[skip_serializing_none]
        #[derive(Debug, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Its id.
            #[schema(value_type = Uuid)]
            pub id: EntryId,
            /// The conversation that stores it: an ancestor's for inherited entries.
            #[schema(value_type = Uuid)]
            pub conversation_id: ConversationId,
            /// The user it was written for.
            #[schema(value_type = Option<String>)]
            pub user_id: Option<UserId>,
            $($(#[$field_doc])* pub $field: $type,)*
            /// Its stream.
            pub channel: Channel,
            /// Its epoch, in the memory channel.
            pub epoch: Option<i64>,
            /// What kind of content it holds.
            pub content_type: String,
            /// The content, value for value as it was sent.
            #[schema(value_type = Vec<serde_json::Value>)]
            pub content: Json,
            /// When it was written.
            #[schema(value_type = String, format = DateTime)]
            pub created_at: Timestamp,
        }

        impl From<domain::Entry> for $name {
            fn from(entry: domain::Entry) -> Self {
                Self {
                    id: entry.id,
                    conversation_id: entry.conversation_id,
                    user_id: entry.user_id,
                    $($field: entry.$field,)*
                    channel: entry.channel.into(),
                    epoch: entry.epoch,
                    content_type: entry.content_type,
                    content: entry.content,
                    created_at: entry.created_at,
                }
            }
        }
    };
}

entry_shape!(
    /// An entry of a conversation.
    Entry {}
);

entry_shape!(
    /// An entry of a conversation, as an admin sees it.
    AdminEntry {
        /// The agent that wrote it.
        #[schema(value_type = Option<String>)]
        client_id: Option<ClientId>,
    }
);

/// What a sync did.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncEntryResponse {
    /// The epoch that is current now.
    pub epoch: Option<i64>,
    /// Nothing was written.
    pub no_op: bool,
    /// The epoch is a new one.
    pub epoch_incremented: bool,
    /// What was written.
    pub entry: Option<Entry>,
}

/// A member of a conversation's tree.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMembership {
    /// The conversation that was asked for.
    #[schema(value_type = Uuid)]
    pub conversation_id: ConversationId,
    /// Who.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// What they may do.
    pub access_level: AccessLevel,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl ConversationMembership {
    /// A membership, seen from one conversation of the tree.
    pub fn of(conversation_id: ConversationId, member: domain::Membership) -> Self {
        Self {
            conversation_id,
            user_id: member.user_id,
            access_level: member.access_level.into(),
            created_at: member.created_at,
        }
    }
}

/// An ownership transfer that waits for its recipient.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnershipTransfer {
    /// Its id.
    #[schema(value_type = Uuid)]
    pub id: TransferId,
    /// The conversation that was named when it was made.
    #[schema(value_type = Uuid)]
    pub conversation_id: ConversationId,
    /// That conversation's title.
    pub conversation_title: Option<String>,
    /// The owner.
    #[schema(value_type = String)]
    pub from_user_id: UserId,
    /// The owner to be.
    #[schema(value_type = String)]
    pub to_user_id: UserId,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl From<domain::Transfer> for OwnershipTransfer {
    fn from(transfer: domain::Transfer) -> Self {
        Self {
            id: transfer.id,
            conversation_id: transfer.conversation_id,
            conversation_title: transfer.conversation_title,
            from_user_id: transfer.from_user_id,
            to_user_id: transfer.to_user_id,
            created_at: transfer.created_at,
        }
    }
}

/// An entry that was found.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult<E> {
    /// The conversation that stores it.
    #[schema(value_type = Uuid)]
    pub conversation_id: ConversationId,
    /// That conversation's title.
    pub conversation_title: Option<String>,
    /// The entry.
    #[schema(value_type = Uuid)]
    pub entry_id: EntryId,
    /// How well it matches; larger is better.
    pub score: f64,
    /// The part of its text that matched, matches wrapped in `**`.
    pub highlights: Option<String>,
    /// The part of its text that matters, if that is longer than 120 words: whole sentences, as they stand there.
    #[schema(nullable = false)]
    pub passage: Option<String>,
    /// The whole entry, where asked for.
    pub entry: Option<E>,
    /// How the score came about, where asked for.
    pub explanation: Option<SearchExplanation>,
}

/// How a score came about.
///
/// `fulltext`: how often and how exactly the query's words are there. `semantic`: the score is the similarity. `fused`: the
/// words and the similarity, both with what was said around the entry, weighed by `meaning`; then multiplied by what the entry
/// keeps for who said it, for being a long one of an agent and for being a question.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchExplanation {
    /// What ranked: `fulltext`, `semantic` or `fused`.
    pub ranker: String,
    /// Which share of what the query's words are worth the entry says.
    pub words: Option<f64>,
    /// Which share more is said nearby, less for being farther.
    pub words_nearby: Option<f64>,
    /// The cosine of the query's vector and the entry's.
    pub similarity: Option<f64>,
    /// The same together with what was said nearby.
    pub similarity_nearby: Option<f64>,
    /// What the similarity counts; words count the rest.
    pub meaning: Option<f64>,
    /// What the entry keeps for who said it.
    pub by_another: Option<f64>,
    /// What the entry keeps for being a long one of an agent.
    pub by_agent: Option<f64>,
    /// What the entry keeps for being a question.
    pub asks: Option<f64>,
}

/// A history entry that nobody has given a text to be found by.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnindexedEntry {
    /// The conversation that stores it.
    #[schema(value_type = Uuid)]
    pub conversation_id: ConversationId,
    /// The entry.
    pub entry: Entry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_as_serde_would_write_it() {
        let entry = |user: Option<&str>, epoch: Option<i64>| Entry {
            id: EntryId(uuid::Uuid::from_u128(7)),
            conversation_id: ConversationId(uuid::Uuid::from_u128(u128::MAX)),
            user_id: user.map(UserId::from),
            channel: if epoch.is_some() { Channel::Memory } else { Channel::History },
            epoch,
            content_type: "history/\"x\"\n".into(),
            content: Json::parse(r#"[{"b":1.10,"a":"\u00e9"}]"#.into()).unwrap(),
            created_at: Timestamp::from_micros(1_767_225_600_000_001),
        };
        let entries = [entry(Some("al\"ice\u{7}é"), None), entry(None, Some(3))];
        for count in 0..=2 {
            for before_cursor in [None, Some(None), Some(Some(EntryId(uuid::Uuid::nil())))] {
                let page = EntriesPage {
                    data: entries[..count]
                        .iter()
                        .map(|e| Entry {
                            content_type: e.content_type.clone(),
                            content: e.content.clone(),
                            user_id: e.user_id.clone(),
                            ..*e
                        })
                        .collect(),
                    after_cursor: before_cursor.flatten(),
                    before_cursor,
                };
                let ours = String::from_utf8(page.to_json()).unwrap();
                assert_eq!(ours, serde_json::to_string(&page).unwrap());
            }
        }
    }
}
