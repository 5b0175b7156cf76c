//! What is archived: every table with its columns, in an order in which none comes before what it refers to.

use super::numbers::Number;
use std::collections::BTreeMap;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Int,
    Real,
    Text,
    Bytes,
    Uuid,
}

impl ColumnKind {
    /// What it is called in an archive.
    pub(super) fn name(self) -> &'static str {
        match self {
            ColumnKind::Int => "int",
            ColumnKind::Real => "real",
            ColumnKind::Text => "text",
            ColumnKind::Bytes => "bytes",
            ColumnKind::Uuid => "uuid",
        }
    }
}

/// A column that is archived.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: ColumnKind,
    /// If it holds numbers that the store gave.
    pub(super) number: Option<Number>,
}

/// Which tenant a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// No tenant: it is part of whole stores only.
    Store,
    /// Its column `tenant` says so.
    Tenant,
    /// This query over the row as `t` does. Rows that lead nowhere have no owner any more. A query that gives one value is
    /// asked row by row in every engine, so that rows can be visited in the order of their keys without sorting them.
    Found(&'static str),
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// As they are.
    Inserting,
    /// As they are, unless one is there.
    Adding,
    /// As they are, in place of the one that is there; in an empty store only.
    Replacing,
    /// As texts that search finds, whose terms and numbers are the engine's.
    Indexing,
}

/// A table that is archived.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// A unique key, which rows are archived in the order of; the first columns.
    pub(super) key: usize,
    pub(super) columns: &'static [Column],
    pub(super) owner: Owner,
    /// Only rows under this condition.
    pub(super) only: Option<&'static str>,
    pub(super) by: By,
}

const fn int(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Int, number: None }
}

const fn real(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Real, number: None }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Text, number: None }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Bytes, number: None }
}

const fn uuid(name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Uuid, number: None }
}

const fn no(number: Number, name: &'static str) -> Column {
    Column { name, kind: ColumnKind::Int, number: Some(number) }
}

const fn table(name: &'static str, key: usize, owner: Owner, columns: &'static [Column]) -> Table {
    Table { name, key, columns, owner, only: None, by: By::Inserting }
}

const OF_GROUP: Owner = Owner::Found("SELECT o.tenant FROM groups o WHERE o.id = t.group_id");
const OF_SCOPE: Owner = Owner::Found("SELECT o.tenant FROM scopes o WHERE o.id = t.scope_id");
const OF_FORGET: Owner = Owner::Found("SELECT o.tenant FROM forgotten_users o WHERE o.id = t.forget_id");
const OF_MEMORY_SCOPE: Owner = Owner::Found("SELECT o.tenant FROM memory_scopes o WHERE o.id = t.scope_no");
const OF_MEMORY: Owner = Owner::Found(
    "SELECT o.tenant FROM memory_scopes o WHERE o.id = (SELECT m.scope_no FROM memories m WHERE m.no = t.no)",
);
/// The front part of a place is the number of its scope.
const OF_PLACE: Owner = Owner::Found("SELECT o.tenant FROM memory_scopes o WHERE o.id = t.place >> 36");

pub(super) const TABLES: &[Table] = &[
    table(
        "data_keys",
        1,
        Owner::Tenant,
        &[bytes("id"), text("tenant"), bytes("wrapped"), text("wrapped_by"), int("active")],
    ),
    // The key of digests is the one fact about a store that its rows depend on. One tenant's rows go without it: it is
    // everybody's.
    Table {
        only: Some("t.key = 'digest_key'"),
        by: By::Replacing,
        ..table("meta", 1, Owner::Store, &[text("key"), bytes("value")])
    },
    table(
        "groups",
        1,
        Owner::Tenant,
        &[
            uuid("id"),
            text("tenant"),
            text("owner_user_id"),
            int("created_at"),
            int("deleted_at"),
            int("next_ord"),
            int("last_created_at"),
            int("latest_updated_at"),
            uuid("latest_conversation_id"),
        ],
    ),
    table(
        "conversations",
        2,
        Owner::Tenant,
        &[
            text("tenant"),
            uuid("id"),
            uuid("group_id"),
            text("owner_user_id"),
            uuid("parent_id"),
            uuid("fork_entry_id"),
            int("has_history"),
            int("created_at"),
            int("updated_at"),
            int("deleted_at"),
            bytes("title"),
            bytes("preview"),
            text("metadata"),
        ],
    ),
    table(
        "memberships",
        2,
        Owner::Tenant,
        &[uuid("group_id"), text("user_id"), text("tenant"), int("access_level"), int("created_at")],
    ),
    table("past_members", 2, Owner::Tenant, &[uuid("group_id"), text("user_id"), text("tenant")]),
    table(
        "ancestry",
        3,
        OF_GROUP,
        &[uuid("group_id"), uuid("descendant"), int("depth"), uuid("ancestor"), int("max_ord")],
    ),
    table(
        "entries",
        4,
        OF_GROUP,
        &[
            uuid("group_id"),
            uuid("conversation_id"),
            int("channel"),
            int("ord"),
            uuid("id"),
            text("user_id"),
            text("client_id"),
            text("memory_of"),
            text("content_type"),
            int("created_at"),
            int("epoch"),
            int("epoch_start"),
            int("item_count"),
            bytes("chain_digest"),
            text("uniform_type"),
            bytes("request_digest"),
            bytes("content"),
        ],
    ),
    // The bytes are not in the store.
    table(
        "attachments",
        1,
        Owner::Tenant,
        &[
            uuid("id"),
            text("tenant"),
            text("storage_key"),
            text("user_id"),
            uuid("group_id"),
            uuid("entry_id"),
            int("status"),
            text("content_type"),
            int("size"),
            int("created_at"),
            int("expires_at"),
            int("deleted_at"),
            bytes("details"),
        ],
    ),
    table(
        "unindexed",
        3,
        Owner::Tenant,
        &[text("tenant"), int("created_at"), uuid("entry_id"), uuid("group_id")],
    ),
    Table {
        by: By::Indexing,
        ..table(
            "texts",
            1,
            OF_GROUP,
            &[uuid("id"), uuid("group_id"), uuid("conversation_id"), text("text"), int("by_agent")],
        )
    },
    table(
        "transfers",
        1,
        Owner::Tenant,
        &[
            uuid("id"),
            text("tenant"),
            uuid("group_id"),
            uuid("conversation_id"),
            text("from_user_id"),
            text("to_user_id"),
            int("created_at"),
        ],
    ),
    table(
        "idempotency_keys",
        5,
        Owner::Tenant,
        &[
            text("tenant"),
            uuid("conversation_id"),
            text("user_id"),
            text("client_id"),
            text("key"),
            bytes("body_digest"),
            uuid("entry_id"),
            int("created_at"),
        ],
    ),
    table(
        "scopes",
        1,
        Owner::Tenant,
        &[
            no(Number::Scope, "id"),
            text("tenant"),
            text("user_id"),
            int("next_sequence"),
            int("file_count"),
            int("event_count"),
            int("open_block"),
        ],
    ),
    table(
        "files",
        2,
        OF_SCOPE,
        &[
            no(Number::Scope, "scope_id"),
            text("path"),
            text("folded_path"),
            int("revision"),
            uuid("change_id"),
            int("updated_at"),
            int("chars"),
            bytes("document"),
        ],
    ),
    table(
        "audit",
        2,
        OF_SCOPE,
        &[
            no(Number::Scope, "scope_id"),
            int("sequence"),
            uuid("change_id"),
            int("at"),
            text("path"),
            int("revision"),
            uuid("previous_id"),
            bytes("record"),
            bytes("image"),
        ],
    ),
    table(
        "events",
        3,
        OF_SCOPE,
        &[no(Number::Scope, "scope_id"), int("block"), text("event_id"), int("timestamp"), bytes("event")],
    ),
    table("event_blocks", 2, OF_SCOPE, &[no(Number::Scope, "scope_id"), int("block"), bytes("body")]),
    table("unreadable_blocks", 2, OF_SCOPE, &[no(Number::Scope, "scope_id"), int("block"), int("found_at")]),
    table(
        "file_idempotency",
        3,
        OF_SCOPE,
        &[
            no(Number::Scope, "scope_id"),
            text("principal"),
            text("key"),
            bytes("fingerprint"),
            int("created_at"),
            bytes("answer"),
        ],
    ),
    table(
        "memory_scopes",
        1,
        Owner::Tenant,
        &[
            no(Number::MemoryScope, "id"),
            bytes("hash"),
            text("tenant"),
            int("layer"),
            text("user_id"),
            text("session_id"),
            text("name"),
            int("entries"),
            int("seq"),
            int("gone_seq"),
        ],
    ),
    table(
        "memories",
        1,
        OF_MEMORY_SCOPE,
        &[
            no(Number::Memory, "no"),
            uuid("id"),
            no(Number::MemoryScope, "scope_no"),
            int("seq"),
            int("kind"),
            int("origin_kind"),
            int("state"),
            int("version"),
            int("at"),
            int("created_at"),
            int("updated_at"),
            int("occurred_at"),
            int("expires_at"),
            int("ttl_seconds"),
            int("anchor"),
            text("author_user"),
            text("author_client"),
            text("shared_by"),
            text("policy"),
            bytes("content"),
            bytes("rest"),
        ],
    ),
    table(
        "memory_index",
        1,
        OF_MEMORY_SCOPE,
        &[
            no(Number::Place, "place"),
            no(Number::MemoryScope, "scope_no"),
            no(Number::Memory, "no"),
            uuid("id"),
            int("kind"),
            int("state"),
            text("policy"),
            text("author_user"),
            text("author_client"),
            int("at"),
            int("created_at"),
            int("updated_at"),
            int("expires_at"),
            int("anchor"),
            real("relevance"),
            real("fading"),
            text("model"),
            bytes("body"),
        ],
    ),
    table("memory_gone", 1, OF_PLACE, &[no(Number::Place, "place"), no(Number::Memory, "no")]),
    table(
        "memory_facts",
        1,
        OF_MEMORY_SCOPE,
        &[
            no(Number::Memory, "no"),
            no(Number::MemoryScope, "scope_no"),
            bytes("statement"),
            bytes("fact_type"),
            bytes("subject"),
            bytes("predicate"),
            bytes("object"),
            real("confidence"),
        ],
    ),
    table("memory_uses", 1, OF_MEMORY, &[no(Number::Memory, "no"), int("uses"), int("used_at")]),
    table(
        "memory_versions",
        2,
        OF_MEMORY,
        &[
            no(Number::Memory, "no"),
            int("version"),
            int("at"),
            text("user_id"),
            text("client"),
            text("shared_by"),
        ],
    ),
    table(
        "memory_texts",
        2,
        OF_MEMORY_SCOPE,
        &[uuid("id"), int("version"), no(Number::MemoryScope, "scope_no"), int("at"), bytes("text")],
    ),
    table(
        "memory_purges",
        1,
        OF_MEMORY_SCOPE,
        &[no(Number::MemoryScope, "scope_no"), int("blanked"), int("at"), uuid("id")],
    ),
    table("memory_upgrades", 1, OF_MEMORY, &[no(Number::Memory, "no")]),
    table(
        "memory_pointers",
        1,
        OF_MEMORY,
        &[no(Number::Memory, "no"), bytes("document"), no(Number::Scope, "due")],
    ),
    table(
        "memory_idempotency",
        3,
        Owner::Tenant,
        &[
            text("tenant"),
            text("principal"),
            text("key"),
            bytes("fingerprint"),
            int("created_at"),
            bytes("answer"),
        ],
    ),
    table(
        "memory_idempotency_users",
        4,
        Owner::Tenant,
        &[text("tenant"), text("principal"), text("key"), text("user_id")],
    ),
    table(
        "jobs",
        1,
        Owner::Tenant,
        &[
            uuid("id"),
            text("tenant"),
            text("user_id"),
            text("started_by"),
            text("kind"),
            text("status"),
            int("created_at"),
            int("claimed_at"),
            int("processed"),
            int("total"),
            text("errors"),
        ],
    ),
    // Some have a name that is there once, whichever store they come from.
    Table {
        by: By::Adding,
        ..table(
            "tasks",
            1,
            Owner::Store,
            &[
                uuid("id"),
                text("name"),
                text("type"),
                text("body"),
                int("created_at"),
                int("retry_at"),
                int("retry_count"),
                int("claimed_at"),
                text("last_error"),
            ],
        )
    },
    table(
        "forgotten_users",
        1,
        Owner::Tenant,
        &[
            no(Number::Forget, "id"),
            text("tenant"),
            text("user_id"),
            no(Number::Scope, "scope_id"),
            int("next_change"),
            int("last_change"),
            int("texts"),
            no(Number::Memory, "last_memory"),
        ],
    ),
    table(
        "forgotten_groups",
        1,
        OF_FORGET,
        &[uuid("group_id"), no(Number::Forget, "forget_id"), int("reachable")],
    ),
    table(
        "forgotten_members",
        2,
        OF_FORGET,
        &[
            no(Number::Forget, "forget_id"),
            uuid("group_id"),
            int("until_ord"),
            uuid("conversation_id"),
            int("channel"),
            int("ord"),
        ],
    ),
    table(
        "changes",
        2,
        Owner::Tenant,
        &[
            text("tenant"),
            int("sequence"),
            int("at"),
            text("kind"),
            text("user_id"),
            text("resource"),
            text("version"),
        ],
    ),
];

/// Changes, where some wait for their number: with the numbers they would be given now. They are committed with what they tell
/// of, so an archive has both or neither.
pub(super) const CHANGES_WITH_WAITING: &str = "(SELECT tenant, sequence, at, kind, user_id, resource, version FROM changes UNION ALL SELECT o.tenant, \
     COALESCE((SELECT MAX(c.sequence) FROM changes c WHERE c.tenant = o.tenant), 0) \
     + ROW_NUMBER() OVER (PARTITION BY o.tenant ORDER BY o.id), o.at, o.kind, o.user_id, o.resource, o.version \
     FROM changes_outbox o)";

/// Tables, and columns of archived tables, that no archive has, each with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    (
        "meta.*",
        "of facts about a store only the key of digests outlives it; how it is encrypted is in the header",
    ),
    ("texts.no", "the engine's own number, given anew"),
    ("texts_waiting", "which texts were taken in is derived with what they are found by"),
    ("texts.terms", "derived from the text with the configured language"),
    ("text_index", "derived from the text with the configured language"),
    ("meanings", "derived from texts: made anew in the background by the server that starts"),
    ("meanings_progress", "says which texts `meanings` has"),
    ("groups.changes", "counts what happened to `meanings`"),
    ("memory_scopes.searched", "which scopes the database searches, decided anew by the server that starts"),
    ("memory_scopes.searched_to", "how far what the database searches is filled"),
    (
        "memories.words",
        "derived from what the entry says, under the key that seals it: made anew by the server",
    ),
    ("memories.statement", "goes with `memories.words`"),
    ("memory_vectors", "derived from `memory_index`"),
    ("memory_common_terms", "derived from `memory_index`"),
    ("changes_outbox", "archived as part of `changes`, with the numbers that are about to be given"),
    ("leases", "who works on what in a cluster, for seconds"),
    ("nodes", "which processes run"),
    ("recordings", "which node holds the recording of a response, for seconds"),
    ("rates", "what is left of quotas, for minutes"),
    ("stream_events", "what followers of a stream may have missed, for minutes"),
    ("stream_kept", "says from where on `stream_events` is complete"),
    ("schema_steps", "the engine's own"),
    ("sqlite_sequence", "numbers that were given are in the header"),
];

/// Every archived column by its table, with its kind as archives call it: for comparing it with what an engine has.
pub fn schema() -> BTreeMap<&'static str, BTreeMap<&'static str, &'static str>> {
    let columns =
        |table: &Table| table.columns.iter().map(|column| (column.name, column.kind.name())).collect();
    TABLES.iter().map(|table| (table.name, columns(table))).collect()
}
