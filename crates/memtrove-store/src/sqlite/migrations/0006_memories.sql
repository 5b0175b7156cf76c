-- A scope of memories: a tenant, a layer and the identifiers that the layer requires. Everything below hangs on its number,
-- so that without this row nothing of it can be reached.
CREATE TABLE memory_scopes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    hash       BLOB NOT NULL UNIQUE,
    tenant     TEXT NOT NULL,
    layer      INTEGER NOT NULL, -- 1 agent … 7 company
    user_id    TEXT, -- of personal layers
    session_id TEXT,
    name       TEXT NOT NULL, -- the identifiers' values: a JSON array
    entries    INTEGER NOT NULL,
    seq        INTEGER NOT NULL, -- the number of its last change
    gone_seq   INTEGER NOT NULL -- up to this change, what was removed is not noted any more
) STRICT;
CREATE INDEX memory_scopes_by_user ON memory_scopes (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX memory_scopes_by_session ON memory_scopes (tenant, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE memories (
    no            INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    id            BLOB NOT NULL UNIQUE,
    scope_no      INTEGER NOT NULL,
    seq           INTEGER NOT NULL, -- the scope's change that it has its row in memory_index under
    kind          INTEGER NOT NULL,
    origin_kind   INTEGER,
    state         INTEGER NOT NULL, -- 0 created, 1 active, 2 decayed, 3 archived
    version       INTEGER NOT NULL,
    at            INTEGER NOT NULL, -- when it happened, or was made: what lists are sorted by
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    occurred_at   INTEGER,
    expires_at    INTEGER,
    ttl_seconds   INTEGER,
    anchor        INTEGER NOT NULL, -- since when it fades
    author_user   TEXT,
    author_client TEXT,
    shared_by     TEXT, -- the author again, in scopes that are not its own: what forgetting looks for
    policy        TEXT NOT NULL,
    content       BLOB NOT NULL, -- perhaps sealed
    rest          BLOB NOT NULL -- metadata, fact, lineage and the policy's lists as JSON, perhaps sealed
) STRICT;
CREATE UNIQUE INDEX memories_by_time ON memories (scope_no, at, id);
CREATE INDEX memories_expiring ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_shared_by ON memories (shared_by) WHERE shared_by IS NOT NULL;

-- What searches look at, in the order in which an index in memory takes it in: `place` is the scope's number × 2^36 and the
-- number of the change. A rowid, so that a scope is one range and a row needs no page of its own.
CREATE TABLE memory_index (
    place      INTEGER PRIMARY KEY,
    scope_no   INTEGER NOT NULL,
    no         INTEGER NOT NULL,
    id         BLOB NOT NULL,
    kind       INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    policy     TEXT NOT NULL,
    author_user   TEXT,
    author_client TEXT,
    at         INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    anchor     INTEGER NOT NULL,
    relevance  REAL NOT NULL, -- at the anchor
    fading     REAL NOT NULL, -- multiplies the daily rate; 0 for what never fades
    model      TEXT, -- none without an embedding
    body       BLOB NOT NULL -- vector, terms, policy's lists and conflict key, perhaps sealed
) STRICT;
-- What was removed, for indexes that still have it.
CREATE TABLE memory_gone (
    place INTEGER PRIMARY KEY,
    no    INTEGER NOT NULL
) STRICT;

-- Facts by what they state. Digests, because what a fact says may be sealed.
CREATE TABLE memory_facts (
    no         INTEGER PRIMARY KEY,
    scope_no   INTEGER NOT NULL,
    statement  BLOB NOT NULL, -- of type, subject, predicate and object together
    fact_type  BLOB NOT NULL,
    subject    BLOB NOT NULL,
    predicate  BLOB NOT NULL,
    object     BLOB NOT NULL,
    confidence REAL NOT NULL
) STRICT;
CREATE UNIQUE INDEX memory_facts_once ON memory_facts (scope_no, statement);
CREATE INDEX memory_facts_by_subject ON memory_facts (scope_no, subject, predicate);
CREATE INDEX memory_facts_by_type ON memory_facts (scope_no, fact_type, confidence);

-- How often entries were found; apart, because it says nothing of their versions.
CREATE TABLE memory_uses (
    no      INTEGER PRIMARY KEY,
    uses    INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;

-- Who made the versions after the first.
CREATE TABLE memory_versions (
    no      INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    user_id TEXT,
    client  TEXT,
    shared_by TEXT, -- the user again, in scopes that are not its own: what forgetting looks for
    PRIMARY KEY (no, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_versions_shared_by ON memory_versions (shared_by) WHERE shared_by IS NOT NULL;

-- Scopes that are out of reach and whose entries are still to be cleared away.
CREATE TABLE memory_purges (
    scope_no INTEGER PRIMARY KEY,
    blanked  INTEGER NOT NULL, -- 1: none of its entries says anything any more
    -- The last entry that was blanked.
    at       INTEGER,
    id       BLOB
) STRICT;

-- Vectors that are to be made with a better model than the one at hand when their text was written.
CREATE TABLE memory_upgrades (
    no INTEGER PRIMARY KEY
) STRICT;

-- Requests that succeeded under an Idempotency-Key, and what they were answered.
CREATE TABLE memory_idempotency (
    tenant      TEXT NOT NULL,
    principal   TEXT NOT NULL,
    key         TEXT NOT NULL, -- behind the route it was used on
    fingerprint BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    answer      BLOB NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (tenant, principal, key)
) STRICT;
CREATE INDEX memory_idempotency_by_age ON memory_idempotency (created_at);
-- Whom an answer tells of: what forgetting looks for.
CREATE TABLE memory_idempotency_users (
    tenant    TEXT NOT NULL,
    principal TEXT NOT NULL,
    key       TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    PRIMARY KEY (tenant, principal, key, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_idempotency_by_user ON memory_idempotency_users (tenant, user_id);

-- Entries that point at files, by the document: a digest, since where a pointer leads may be sealed.
CREATE TABLE memory_pointers (
    no       INTEGER PRIMARY KEY,
    document BLOB NOT NULL, -- of the tenant, of the user in personal layers, and of the path
    due      INTEGER -- the number of the scope of files whose document changed since the entry was looked at
) STRICT;
CREATE INDEX memory_pointers_by_document ON memory_pointers (document);
CREATE INDEX memory_pointers_due ON memory_pointers (due) WHERE due IS NOT NULL;

-- Memories with a greater number came after a forget and are not its own.
ALTER TABLE forgotten_users ADD COLUMN last_memory INTEGER NOT NULL DEFAULT 0;
