-- What nodes that share a store agree on. One process on its own writes nothing of it.

-- Work that one node at a time does for all.
CREATE TABLE leases (
    name   TEXT PRIMARY KEY,
    holder BLOB NOT NULL, -- the node
    until  INTEGER NOT NULL -- from then on anybody may take it
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    id         BLOB PRIMARY KEY,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL, -- when it last said that it is there
    host       TEXT, -- the machine it runs on
    process    INTEGER,
    settings   TEXT -- what nodes must agree on, in words
) STRICT, WITHOUT ROWID;

-- Buckets of calls that all nodes draw from.
CREATE TABLE rates (
    bucket  BLOB PRIMARY KEY, -- a digest of whose it is
    full_at INTEGER NOT NULL -- nanoseconds since 1970
) STRICT, WITHOUT ROWID;

-- What happened to memories, for those who follow it on any node. Kept for minutes.
CREATE TABLE stream_events (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    waiting  INTEGER UNIQUE, -- what its change waits under for its number
    sequence INTEGER, -- the number of its change; null while it waits
    scope    BLOB NOT NULL,
    memory   BLOB NOT NULL,
    author   TEXT, -- the user who made the memory
    at       INTEGER NOT NULL,
    body     BLOB -- perhaps sealed; null once the memory is gone
) STRICT;
CREATE INDEX stream_events_by_sequence ON stream_events (tenant, sequence);
CREATE INDEX stream_events_by_memory ON stream_events (memory);
CREATE INDEX stream_events_by_scope ON stream_events (scope);
CREATE INDEX stream_events_by_age ON stream_events (at);

-- Every event of a tenant with a greater number is there. Without a row nothing is known of what was before.
CREATE TABLE stream_kept (
    tenant TEXT PRIMARY KEY,
    after  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
