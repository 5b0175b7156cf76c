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

-- A forget that has not come to its end: what belongs to it was decided when this row was written, and is cleared away in
-- steps. A user may be forgotten again before that, so each has a number of its own.
CREATE TABLE forgotten_users (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    user_id     TEXT, -- null once nothing is left but what deleted rows left on the disk
    scope_id    INTEGER,
    next_change INTEGER NOT NULL, -- of the change feed: where the name is still to be taken off
    last_change INTEGER NOT NULL, -- of the change feed: what came later is not this forget's
    texts       INTEGER NOT NULL -- 1: the full-text index is to be rewritten
) STRICT;
-- The trees it owned. From the first moment on nobody can open one of these.
CREATE TABLE forgotten_groups (
    group_id  BLOB PRIMARY KEY,
    forget_id INTEGER NOT NULL,
    reachable INTEGER NOT NULL -- 1: lists and searches may still name it; 0: only its entries are left
) STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_groups_by_forget ON forgotten_groups (forget_id, reachable);
-- The trees of others in which it may have written, before this place in their order.
CREATE TABLE forgotten_members (
    forget_id       INTEGER NOT NULL,
    group_id        BLOB NOT NULL,
    until_ord       INTEGER NOT NULL,
    -- The last entry that was looked at.
    conversation_id BLOB,
    channel         INTEGER,
    ord             INTEGER,
    PRIMARY KEY (forget_id, group_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX groups_deleted_by_owner ON groups (tenant, owner_user_id) WHERE deleted_at IS NOT NULL;

-- Who was once a member of a tree, and may have written in it.
CREATE TABLE past_members (
    group_id BLOB NOT NULL,
    user_id  TEXT NOT NULL,
    tenant   TEXT NOT NULL,
    PRIMARY KEY (group_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX past_members_by_user ON past_members (tenant, user_id, group_id);
-- Of those who left before this table was there, what they wrote is all that is known.
INSERT INTO past_members (group_id, user_id, tenant)
    SELECT DISTINCT e.group_id, e.user_id, g.tenant FROM entries e JOIN groups g ON g.id = e.group_id
    WHERE e.user_id IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM memberships m WHERE m.group_id = e.group_id AND m.user_id = e.user_id);

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
CREATE INDEX audit_by_path ON audit (scope_id, path, sequence, at); -- with the time, so that retention need not see the rows

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
CREATE INDEX events_by_time ON events (scope_id, timestamp); -- the caller's times follow nothing, so retention needs it

-- The derived index of events: what searches look at, some dozen events to a row.
CREATE TABLE event_blocks (
    scope_id INTEGER NOT NULL,
    block    INTEGER NOT NULL,
    body     BLOB NOT NULL, -- perhaps sealed
    PRIMARY KEY (scope_id, block)
) STRICT;

-- Blocks that searches found damaged, until they are rebuilt.
CREATE TABLE unreadable_blocks (
    scope_id INTEGER NOT NULL,
    block    INTEGER NOT NULL,
    found_at INTEGER NOT NULL,
    PRIMARY KEY (scope_id, block)
) STRICT, WITHOUT ROWID;

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
    tenant     TEXT NOT NULL,
    user_id    TEXT, -- null: all of the tenant
    started_by TEXT NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL, -- queued, running, succeeded, failed
    created_at INTEGER NOT NULL,
    claimed_at INTEGER, -- when whoever works on it last said so
    processed  INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    errors     TEXT NOT NULL -- a JSON array of texts
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_unfinished ON jobs (created_at) WHERE status IN ('queued', 'running');
