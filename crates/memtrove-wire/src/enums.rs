//! The words of the API: read in any letter case, written in lower case.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $word:literal $(| $alias:literal)*),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
        pub enum $name {
            $($(#[$item_doc])* #[schema(rename = $word)] $item),+
        }

        impl $name {
            /// Every word, as it is written.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => $word),+ }
            }

            /// Reads a word in any letter case.
            pub fn parse(text: &str) -> Option<Self> {
                $(if text.eq_ignore_ascii_case($word) $(|| text.eq_ignore_ascii_case($alias))* {
                    return Some(Self::$item);
                })+
                None
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| {
                    serde::de::Error::custom(format!("'{text}' is none of {}", Self::WORDS.join(", ")))
                })
            }
        }
    };
}
pub(crate) use words;

words!(
    /// Which stream of a conversation an entry belongs to.
    Channel {
        /// The visible transcript.
        History = "history",
        /// One agent's private working state.
        Memory = "memory" | "context",
    }
);

words!(
    /// Which streams a list shows.
    ChannelFilter {
        /// The visible transcript.
        History = "history",
        /// The calling agent's memory.
        Memory = "memory" | "context",
        /// Both.
        All = "all",
    }
);

words!(
    /// What a member may do.
    AccessLevel {
        /// Everything, including deletion and handing over.
        Owner = "owner",
        /// Also sharing.
        Manager = "manager",
        /// Also appending, syncing, forking, renaming.
        Writer = "writer",
        /// Reading.
        Reader = "reader",
    }
);

words!(
    /// Which conversations of each fork tree a list shows.
    ListMode {
        /// Every one.
        All = "all",
        /// Those without a parent.
        Roots = "roots",
        /// The most recently updated one.
        LatestFork = "latest-fork" | "latest_fork",
    }
);

words!(
    /// Which branches a list of entries shows.
    Forks {
        /// The path from the root to the conversation.
        None = "none",
        /// Every branch of the tree.
        All = "all",
    }
);

words!(
    /// How to search.
    SearchType {
        /// With whatever is available.
        Auto = "auto",
        /// By meaning.
        Semantic = "semantic",
        /// By words.
        FullText = "fulltext",
    }
);

words!(
    /// From which side transfers are listed.
    TransferRole {
        /// Sent by the caller.
        Sender = "sender",
        /// Offered to the caller.
        Recipient = "recipient",
        /// Both.
        All = "all",
    }
);

impl From<memtrove_core::conversations::AccessLevel> for AccessLevel {
    fn from(level: memtrove_core::conversations::AccessLevel) -> Self {
        match level {
            memtrove_core::conversations::AccessLevel::Owner => Self::Owner,
            memtrove_core::conversations::AccessLevel::Manager => Self::Manager,
            memtrove_core::conversations::AccessLevel::Writer => Self::Writer,
            memtrove_core::conversations::AccessLevel::Reader => Self::Reader,
        }
    }
}

impl From<AccessLevel> for memtrove_core::conversations::AccessLevel {
    fn from(level: AccessLevel) -> Self {
        match level {
            AccessLevel::Owner => Self::Owner,
            AccessLevel::Manager => Self::Manager,
            AccessLevel::Writer => Self::Writer,
            AccessLevel::Reader => Self::Reader,
        }
    }
}

impl From<memtrove_core::conversations::Channel> for Channel {
    fn from(channel: memtrove_core::conversations::Channel) -> Self {
        match channel {
            memtrove_core::conversations::Channel::History => Self::History,
            memtrove_core::conversations::Channel::Memory => Self::Memory,
        }
    }
}

impl From<Channel> for memtrove_core::conversations::Channel {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::History => Self::History,
            Channel::Memory => Self::Memory,
        }
    }
}

impl From<ListMode> for memtrove_core::conversations::ListMode {
    fn from(mode: ListMode) -> Self {
        match mode {
            ListMode::All => Self::All,
            ListMode::Roots => Self::Roots,
            ListMode::LatestFork => Self::LatestFork,
        }
    }
}
