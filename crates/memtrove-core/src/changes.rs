//! The change feed's vocabulary: what may happen to what a tenant keeps.

use crate::{Timestamp, UserId};

macro_rules! kinds {
    ($($(#[$doc:meta])* $item:ident = $word:literal),+ $(,)?) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ChangeKind {
            $($(#[$doc])* $item),+
        }

        impl ChangeKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// The word for it, in the store and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => $word),+ }
            }

            /// The kind a word stands for.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$item),)+ _ => None }
            }
        }
    };
}

kinds! {
    /// A file was written for the first time.
    FileCreated = "file.created",
    /// A file has a new version.
    FileUpdated = "file.updated",
    /// A file has left its path: it was deleted, or it is at another one now.
    FileDeleted = "file.deleted",
    /// An event was written, or written again.
    EventWritten = "event.written",
    /// An event was removed, and with it the memory that mirrors it.
    EventDeleted = "event.deleted",
    /// Retention removed things of a user.
    RetentionApplied = "retention.applied",
    /// Everything of a user was removed.
    UserForgotten = "user.forgotten",
    /// Something happened to somebody who has been forgotten since.
    Forgotten = "forgotten",
    /// A conversation was made, as a root or as a fork.
    ConversationCreated = "conversation.created",
    /// A conversation has another title.
    ConversationUpdated = "conversation.updated",
    /// A conversation was deleted, and its whole tree with it.
    ConversationDeleted = "conversation.deleted",
    /// A deleted tree is back.
    ConversationRestored = "conversation.restored",
    /// A deleted tree is gone for good.
    ConversationEvicted = "conversation.evicted",
    /// An entry was appended to a history.
    EntryAppended = "entry.appended",
    /// An entry was appended to an agent's memory.
    MemoryAppended = "memory.appended",
    /// A memory was made.
    MemoryCreated = "memory.created",
    /// A memory has another version.
    MemoryUpdated = "memory.updated",
    /// A memory is gone.
    MemoryDeleted = "memory.deleted",
    /// Somebody became a member of a tree.
    MembershipAdded = "membership.added",
    /// A member has another level.
    MembershipUpdated = "membership.updated",
    /// Somebody is no longer a member.
    MembershipRemoved = "membership.removed",
    /// The ownership of a tree was offered to a member.
    TransferCreated = "transfer.created",
    /// An offer was taken back, turned down, or found void.
    TransferDeleted = "transfer.deleted",
    /// An offer was accepted: a tree has another owner.
    OwnershipTransferred = "ownership.transferred",
}

/// A change as the feed tells it: references, never content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Its number: 1, 2, 3… in each tenant, in the order of the commits, without gaps, never used twice.
    pub sequence: i64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: ChangeKind,
    /// Whose it is, who did it, or which member it is about; none where no user is concerned.
    pub user: Option<UserId>,
    /// What it happened to: a path, an event's id, a conversation's id. Only a forgotten change has none.
    pub resource: Option<String>,
    /// Which version or part of it: an ETag, an entry's id, a transfer's id.
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back_from_its_word() {
        for kind in ChangeKind::ALL {
            assert_eq!(ChangeKind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(ChangeKind::parse("coffee.brewed"), None);
    }
}
