-- Large scopes of memories, searched by the database: what nodes would otherwise hold in their memory, each of them.

CREATE EXTENSION IF NOT EXISTS vector;
DO $$
DECLARE installed TEXT := (SELECT extversion FROM pg_extension WHERE extname = 'vector');
BEGIN
    -- Filters that let few entries pass need scans that go on.
    IF string_to_array(installed, '.')::BIGINT[] < ARRAY[0, 8]::BIGINT[] THEN
        RAISE EXCEPTION 'pgvector % is too old, 0.8 is needed: install it and run ALTER EXTENSION vector UPDATE', installed;
    END IF;
END
$$;

-- How a scope is searched: 0 in the memory of nodes, 1 so and what is below is being filled, 2 by the database, 3 in the
-- memory of nodes and what is below is being cleared away. A change of it makes those who write to the scope begin anew.
ALTER TABLE memory_scopes ADD COLUMN searched BIGINT NOT NULL DEFAULT 0;
-- In state 1 the change that was filled in last; in state 2 how many entries there were when words were counted.
ALTER TABLE memory_scopes ADD COLUMN searched_to BIGINT NOT NULL DEFAULT 0;
CREATE INDEX memory_scopes_searched ON memory_scopes (id) WHERE searched <> 0;

-- One row for each entry of a scope in states 1 and 2. Only in stores that are not encrypted.
CREATE TABLE memory_vectors (
    no BIGINT PRIMARY KEY,
    scope_no BIGINT NOT NULL,
    seq BIGINT NOT NULL, -- the scope's change that it has its row in memory_index under
    kind BIGINT NOT NULL,
    state BIGINT NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    author_user TEXT COLLATE "C",
    author_client TEXT COLLATE "C",
    at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    dimensions BIGINT, -- none without a vector
    embedding halfvec,
    terms BIGINT[] NOT NULL -- digests of a word and the scope together, so that a scope's words are found by themselves
) WITH (fillfactor = 90);
-- What decides who sees an entry stands in it too, so that entries can be counted without being read.
CREATE INDEX memory_vectors_by_scope ON memory_vectors (scope_no, dimensions, at)
    INCLUDE (kind, state, policy, author_user, author_client, created_at, expires_at);
CREATE INDEX memory_vectors_shared ON memory_vectors (scope_no, no) WHERE policy IN ('restricted', 'shared');
CREATE INDEX memory_vectors_by_term ON memory_vectors USING gin (terms) WITH (gin_pending_list_limit = 256);
-- Beside these every scope in state 2 has an index of its own, memory_vectors_<scope>_<dimensions>: what is searched together
-- stands together, and small scopes have no part in it.

-- Words that many entries of a scope have, and which share of them.
CREATE TABLE memory_common_terms (
    term BIGINT PRIMARY KEY,
    scope_no BIGINT NOT NULL,
    share DOUBLE PRECISION NOT NULL
);
CREATE INDEX memory_common_terms_by_scope ON memory_common_terms (scope_no);
