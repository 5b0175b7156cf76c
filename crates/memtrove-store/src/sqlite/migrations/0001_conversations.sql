-- Instants are microseconds since 1970. UUIDs are 16-byte blobs. A tree ("group") belongs to one tenant and its id is
-- unique everywhere, so tables below it carry the group id instead of the tenant.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE groups (
    id                     BLOB PRIMARY KEY,
    tenant                 TEXT NOT NULL,
    owner_user_id          TEXT NOT NULL,
    created_at             INTEGER NOT NULL,
    deleted_at             INTEGER,
    next_ord               INTEGER NOT NULL,
    -- The tree's clock: no entry and no change of a title is older than the one before.
    last_created_at        INTEGER NOT NULL,
    -- The greatest (updated_at, id) of its conversations: what `latest-fork` lists.
    latest_updated_at      INTEGER NOT NULL,
    latest_conversation_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX groups_by_owner ON groups (tenant, owner_user_id, latest_updated_at, latest_conversation_id)
    WHERE deleted_at IS NULL;
CREATE INDEX groups_deleted ON groups (tenant, deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE conversations (
    tenant        TEXT NOT NULL,
    id            BLOB NOT NULL,
    group_id      BLOB NOT NULL,
    owner_user_id TEXT NOT NULL,
    -- The lineage as it is reported: the parent, and the last entry that is included.
    parent_id     BLOB,
    fork_entry_id BLOB,
    has_history   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    deleted_at    INTEGER,
    title         TEXT,
    preview       TEXT,
    metadata      TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_by_group ON conversations (group_id, id);
CREATE INDEX conversations_by_owner ON conversations (tenant, owner_user_id, updated_at, id) WHERE deleted_at IS NULL;

CREATE TABLE memberships (
    group_id     BLOB NOT NULL,
    user_id      TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    access_level INTEGER NOT NULL, -- 1 owner, 2 manager, 3 writer, 4 reader
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
-- What others shared with a user; what it owns is found through groups_by_owner.
CREATE INDEX memberships_shared ON memberships (tenant, user_id, group_id) WHERE access_level > 1;
CREATE UNIQUE INDEX memberships_one_owner ON memberships (group_id) WHERE access_level = 1;

-- A fork sees, of each ancestor, the entries up to max_ord. A conversation sees all of its own, without a row here.
CREATE TABLE ancestry (
    group_id   BLOB NOT NULL,
    descendant BLOB NOT NULL,
    depth      INTEGER NOT NULL, -- 1 is the parent
    ancestor   BLOB NOT NULL,
    max_ord    INTEGER NOT NULL,
    PRIMARY KEY (group_id, descendant, depth)
) STRICT, WITHOUT ROWID;

-- Clustered so that a page of one conversation's history is one range scan, whatever its siblings hold.
CREATE TABLE entries (
    group_id        BLOB NOT NULL,
    conversation_id BLOB NOT NULL,
    channel         INTEGER NOT NULL, -- 1 history, 2 memory
    ord             INTEGER NOT NULL,
    id              BLOB NOT NULL,
    user_id         TEXT,
    client_id       TEXT,
    memory_of       TEXT, -- the client again, for memory entries only
    content_type    TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    epoch           INTEGER,
    -- Memory only: where the epoch began on this path, and the digest chain up to and including this row.
    epoch_start     INTEGER,
    item_count      INTEGER,
    chain_digest    BLOB,
    uniform_type    TEXT,
    request_digest  BLOB,
    content         BLOB NOT NULL,
    PRIMARY KEY (group_id, conversation_id, channel, ord)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_id ON entries (id);
-- Holds all that a sync decides by: looking at the row itself would read its whole content, since a row of this kind of
-- table is compared with everything it has.
CREATE INDEX entries_memory ON entries (
    group_id, conversation_id, memory_of, ord, epoch, epoch_start, item_count, chain_digest, uniform_type, request_digest
) WHERE memory_of IS NOT NULL;

-- History entries that nobody has given an indexedContent yet: the indexers' work list.
CREATE TABLE unindexed (
    tenant     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    entry_id   BLOB NOT NULL,
    group_id   BLOB NOT NULL,
    PRIMARY KEY (tenant, created_at, entry_id)
) STRICT, WITHOUT ROWID;

-- What full-text search finds. `no` ties a row to its terms in text_index.
CREATE TABLE texts (
    no              INTEGER PRIMARY KEY,
    id              BLOB NOT NULL UNIQUE,
    group_id        BLOB NOT NULL,
    conversation_id BLOB NOT NULL,
    text            TEXT NOT NULL
) STRICT;
-- Neither positions nor frequencies: FTS5 finds, memtrove-core ranks.
CREATE VIRTUAL TABLE text_index USING fts5 (terms, content='', contentless_delete=1, detail=none, tokenize='ascii');
-- Merges fewer, larger segments: the writer has better things to do.
INSERT INTO text_index (text_index, rank) VALUES ('automerge', 16);

CREATE TABLE idempotency_keys (
    tenant          TEXT NOT NULL,
    conversation_id BLOB NOT NULL,
    user_id         TEXT NOT NULL,
    client_id       TEXT NOT NULL, -- '' without a client
    key             TEXT NOT NULL,
    body_digest     BLOB NOT NULL,
    entry_id        BLOB NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, conversation_id, user_id, client_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE transfers (
    id              BLOB PRIMARY KEY,
    tenant          TEXT NOT NULL,
    group_id        BLOB NOT NULL UNIQUE,
    conversation_id BLOB NOT NULL,
    from_user_id    TEXT NOT NULL,
    to_user_id      TEXT NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX transfers_by_sender ON transfers (tenant, from_user_id, id);
CREATE INDEX transfers_by_recipient ON transfers (tenant, to_user_id, id);

CREATE TABLE tasks (
    id          BLOB PRIMARY KEY,
    name        TEXT UNIQUE,
    type        TEXT NOT NULL,
    body        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    retry_at    INTEGER NOT NULL,
    retry_count INTEGER NOT NULL,
    claimed_at  INTEGER,
    last_error  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_due ON tasks (retry_at);
