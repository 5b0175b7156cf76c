-- What nodes that share a database agree on.

-- Work that one node at a time does for all.
CREATE TABLE leases (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder UUID NOT NULL, -- the node
    until BIGINT NOT NULL -- from then on anybody may take it
);

CREATE TABLE nodes (
    id UUID PRIMARY KEY,
    version TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL, -- when it last said that it is there
    host TEXT COLLATE "C", -- the machine it runs on
    process BIGINT,
    settings TEXT COLLATE "C" -- what nodes must agree on, in words
);

-- Buckets of calls that all nodes draw from. After a crash of the database they are full again, as after a restart of a node
-- on its own.
CREATE UNLOGGED TABLE rates (
    bucket BYTEA PRIMARY KEY, -- a digest of whose it is
    full_at BIGINT NOT NULL -- nanoseconds since 1970
) WITH (fillfactor = 70);

-- What happened to memories, for those who follow it on any node. Kept for minutes; a crash of the database empties both
-- tables, which followers notice by what is missing in the second.
CREATE UNLOGGED TABLE stream_events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    waiting BIGINT UNIQUE, -- the row of changes_outbox that its number comes from
    sequence BIGINT, -- the number of its change; null while it waits
    scope BYTEA NOT NULL,
    memory UUID NOT NULL,
    author TEXT COLLATE "C", -- the user who made the memory
    at BIGINT NOT NULL,
    body BYTEA -- perhaps sealed; null once the memory is gone
);
CREATE INDEX stream_events_by_sequence ON stream_events (tenant, sequence);
CREATE INDEX stream_events_by_memory ON stream_events (memory);
CREATE INDEX stream_events_by_scope ON stream_events (scope);
CREATE INDEX stream_events_by_age ON stream_events (at);

-- Every event of a tenant with a greater number is there. Without a row nothing is known of what was before.
CREATE UNLOGGED TABLE stream_kept (
    tenant TEXT COLLATE "C" PRIMARY KEY,
    after BIGINT NOT NULL
);

-- The second line behind the conditions of every statement, as for other tables.
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['stream_events', 'stream_kept'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING (tenant = current_setting(%L, true) '
            'OR COALESCE(current_setting(%L, true), %L) = %L)',
            name, 'memloom.tenant', 'memloom.tenant', '', '');
    END LOOP;
END
$$;
