-- A scope is one user of one tenant. Everything of the files surface hangs on its number, so that forgetting a user is one
-- row: without it nothing below can be reached, and what is left is cleared away in peace.
CREATE TABLE scopes (
    id            INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    tenant        TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    next_sequence INTEGER NOT NULL, -- of the audit trail
    file_count    INTEGER NOT NULL,
    event_count   INTEGER NOT NULL,
    open_block    INTEGER NOT NULL, -- of the event index: the one that takes the next event
    UNIQUE (tenant, user_id)
) STRICT;

-- What forgotten users left behind: unreachable, and being cleared away. The users themselves stand here only until their
-- names are taken off what others keep.
CREATE TABLE forgotten_users (
    tenant  TEXT NOT NULL,
    user_id TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE forgotten_scopes (
    scope_id INTEGER PRIMARY KEY
) STRICT;
CREATE TABLE forgotten_groups (
    group_id BLOB PRIMARY KEY,
    tenant   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Who was once a member of a tree, and may have written in it.
CREATE TABLE past_members (
    group_id BLOB NOT NULL,
    user_id  TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX past_members_by_user ON past_members (tenant, user_id, group_id);

CREATE TABLE files (
    scope_id    INTEGER NOT NULL,
    path        TEXT NOT NULL,
    folded_path TEXT NOT NULL, -- what lists are sorted and matched by
    revision    INTEGER NOT NULL,
    change_id   BLOB NOT NULL, -- with the revision: the ETag
    updated_at  INTEGER NOT NULL,
    chars       INTEGER NOT NULL,
    document    BLOB NOT NULL, -- the envelope as compact JSON, perhaps sealed
    PRIMARY KEY (scope_id, path)
) STRICT;
CREATE INDEX files_by_folded_path ON files (scope_id, folded_path, path);

CREATE TABLE audit (
    scope_id    INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    change_id   BLOB NOT NULL UNIQUE,
    at          INTEGER NOT NULL,
    path        TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    previous_id BLOB, -- the change before, null on create
    record      BLOB NOT NULL, -- the rest of the record as JSON, perhaps sealed
    image       BLOB, -- the document after the change, perhaps sealed
    PRIMARY KEY (scope_id, sequence)
) STRICT;
CREATE INDEX audit_by_path ON audit (scope_id, path, sequence);

-- Clustered by block, so that an event's neighbours in the index are its neighbours here.
CREATE TABLE events (
    scope_id  INTEGER NOT NULL,
    block     INTEGER NOT NULL,
    event_id  TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    event     BLOB NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (scope_id, block, event_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX events_by_id ON events (scope_id, event_id);

-- The derived index of events: what searches look at, some dozen events to a row.
CREATE TABLE event_blocks (
    scope_id INTEGER NOT NULL,
    block    INTEGER NOT NULL,
    body     BLOB NOT NULL, -- perhaps sealed
    PRIMARY KEY (scope_id, block)
) STRICT;

-- Requests that succeeded under an Idempotency-Key, and what they were answered.
CREATE TABLE file_idempotency (
    scope_id    INTEGER NOT NULL,
    principal   TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    answer      BLOB NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (scope_id, principal, key)
) STRICT;
CREATE INDEX file_idempotency_by_age ON file_idempotency (created_at);

-- Long work that somebody asked for and may watch.
CREATE TABLE jobs (
    id         BLOB PRIMARY KEY,
    tenant     TEXT, -- null: all of them
    started_by TEXT NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL, -- queued, running, succeeded, failed
    created_at INTEGER NOT NULL,
    processed  INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    errors     TEXT NOT NULL -- a JSON array of texts
) STRICT, WITHOUT ROWID;
