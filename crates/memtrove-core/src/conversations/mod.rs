//! Conversations: what was said, by whom, on which branch.

mod access;
pub mod content;
pub mod forks;
pub mod sync;
pub mod transcript;

pub use access::AccessLevel;

use crate::{ClientId, ConversationId, EntryId, Json, Timestamp, TransferId, UserId};

/// The longest title, in characters.
pub const MAX_TITLE_CHARS: usize = 500;
/// The longest content type, in characters.
pub const MAX_CONTENT_TYPE_CHARS: usize = 127;
/// The most items one append may bring.
pub const MAX_APPEND_ITEMS: usize = 1_000;
/// The most items one sync may bring.
pub const MAX_SYNC_ITEMS: usize = 10_000;
/// The longest `indexedContent`, in characters.
pub const MAX_INDEXED_CHARS: usize = 100_000;
/// The deepest nesting of content.
pub const MAX_NESTING: usize = 64;

/// Which stream of a conversation an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The visible transcript.
    History,
    /// One agent's private working state, in epochs.
    Memory,
}

impl Channel {
    /// The number it is stored and sent as.
    pub const fn code(self) -> i64 {
        match self {
            Channel::History => 1,
            Channel::Memory => 2,
        }
    }

    /// The channel of a stored number.
    pub const fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Channel::History),
            2 => Some(Channel::Memory),
            _ => None,
        }
    }

    /// The contract's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Channel::History => "history",
            Channel::Memory => "memory",
        }
    }
}

/// A conversation as one caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Its title, given or derived from the first message.
    pub title: Option<String>,
    /// The owner of the whole tree.
    pub owner_user_id: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its history or title changed last.
    pub updated_at: Timestamp,
    /// The beginning of its newest message.
    pub last_message_preview: Option<String>,
    /// What the caller may do.
    pub access_level: AccessLevel,
    /// The conversation it was forked from.
    pub forked_at_conversation_id: Option<ConversationId>,
    /// The last entry it shares with that conversation.
    pub forked_at_entry_id: Option<EntryId>,
    /// What its creator noted: a JSON object.
    pub metadata: Json,
    /// When its tree was deleted, if it was.
    pub deleted_at: Option<Timestamp>,
}

impl Conversation {
    /// Whether it has no parent. A fork that started blank has one.
    pub fn is_root(&self) -> bool {
        self.forked_at_conversation_id.is_none()
    }
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The conversation that stores it: an ancestor's for inherited entries.
    pub conversation_id: ConversationId,
    /// Its place in the tree: strictly increasing inside a group.
    pub ord: i64,
    /// The user it was written for.
    pub user_id: Option<UserId>,
    /// The agent that wrote it.
    pub client_id: Option<ClientId>,
    /// Its stream.
    pub channel: Channel,
    /// Its epoch, in the memory channel.
    pub epoch: Option<i64>,
    /// What kind of content it holds.
    pub content_type: String,
    /// A JSON array.
    pub content: Json,
    /// When it was written; never decreasing along `ord`.
    pub created_at: Timestamp,
}

/// A member of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Membership {
    /// Who.
    pub user_id: UserId,
    /// What they may do.
    pub access_level: AccessLevel,
    /// Since when.
    pub created_at: Timestamp,
}

/// An ownership transfer that waits for its recipient.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Its id.
    pub id: TransferId,
    /// The conversation that was named when it was made.
    pub conversation_id: ConversationId,
    /// That conversation's title.
    pub conversation_title: Option<String>,
    /// The owner.
    pub from_user_id: UserId,
    /// The owner to be.
    pub to_user_id: UserId,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Which conversations of each tree a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListMode {
    /// Every one.
    All,
    /// Those without a parent.
    Roots,
    /// The most recently updated one of each tree.
    #[default]
    LatestFork,
}
