//! Newtypes for ids, so that an entry's id can never stand where a conversation's is meant.

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use uuid::{Builder, Uuid};

/// Reads a UUID in its text form, `8-4-4-4-12` hexadecimal digits in any letter case, and in no other.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

/// The id of something that is named elsewhere: always the same for the same names, so that what is brought in again is found
/// again.
pub fn derived_uuid(names: &[&str]) -> Uuid {
    let mut hasher = Sha256::new();
    for name in names {
        hasher.update((name.len() as u64).to_be_bytes());
        hasher.update(name);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                parse_uuid(&text).map(Self).ok_or_else(|| serde::de::Error::custom("not a UUID"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

uuid_id!(
    /// A conversation. Unique inside its tenant; clients may choose it.
    ConversationId
);
uuid_id!(
    /// An entry. Chosen by the server, unique everywhere.
    EntryId
);
uuid_id!(
    /// A fork tree: the unit of access, deletion and eviction. Never leaves the server.
    GroupId
);
uuid_id!(
    /// A pending ownership transfer.
    TransferId
);
uuid_id!(
    /// A file that belongs to an entry, or will. Chosen by the server, unique everywhere.
    AttachmentId
);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }
    };
}

text_id!(
    /// A person or system outside Memtrove, compared byte for byte.
    UserId
);
text_id!(
    /// An agent, as its API key names it.
    ClientId
);
