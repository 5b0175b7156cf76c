//! Labels from the time when the product was called Memloom.
//!
//! Stored bytes depend on each of them: a key derived under another label opens nothing, an id derived under another label
//! is another id, and a lock of another name lets two nodes of one database do the same work. So they are never changed,
//! and no label is added here: a new one says `memtrove`, where it is used.

/// Derives the name of a key that wraps data keys; data keys are stored with it.
pub const WRAPPING_KEY_ID: &str = "memloom: the name of a key that wraps data keys";
/// Derives the signing key from a key that wraps data keys.
pub const SIGNING_KEY: &str = "memloom: what is signed by who has a key that wraps data keys";
/// Derives the prefix of a store's attachments in its object store.
pub const ATTACHMENTS_PREFIX: &str = "memloom attachments";
/// Derives the key that links are signed with, where nothing is sealed.
pub const STORE_LINKS_KEY: &str = "memloom links";
/// Derives the key of links to attachments, which may be good for days.
pub const ATTACHMENT_LINKS_KEY: &str = "memloom links to attachments";
/// Derives the key that names of quota buckets are hashed with.
pub const RATES_KEY: &str = "memloom rates";
/// Derives the key that cursors of memories are sealed with.
pub const MEMORY_CURSORS_KEY: &str = "memloom cursors of memories";
/// Every archive begins with it.
pub const ARCHIVE_MAGIC: &[u8] = b"memloom archive\n";
/// Ids of what is imported derive from it, so that importing again finds what is there.
pub const IMPORTED_ID: &str = "memloom import";

/// The policies of row-level security read the tenant from this setting of PostgreSQL.
pub const POSTGRES_TENANT_SETTING: &str = "memloom.tenant";
/// The schema of PostgreSQL that holds what goes with the last process.
pub const POSTGRES_VOLATILE_SCHEMA: &str = "memloom_volatile";
/// The channel on which nodes of a database tell each other of changes.
pub const POSTGRES_CHANGES_CHANNEL: &str = "memloom_changes";
/// The lock of the node that numbers changes.
pub const POSTGRES_NUMBERING_LOCK: &[u8] = b"memloom numbers changes";
/// The lock of the node that migrates.
pub const POSTGRES_MIGRATION_LOCK: &[u8] = b"memloom migrates";
/// The lock that every node shares.
pub const POSTGRES_PRESENCE_LOCK: &[u8] = b"memloom is here";
/// The lock of the node that makes and drops indexes of vectors.
pub const POSTGRES_VECTOR_INDEX_LOCK: &[u8] = b"memloom keeps indexes of vectors";
