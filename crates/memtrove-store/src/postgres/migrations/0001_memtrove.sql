-- Instants are microseconds since 1970. Text is compared by its bytes. A tree ("group") belongs to one tenant and its id is
-- unique everywhere, so tables below it carry the group id instead of the tenant.

CREATE TABLE meta (
    key TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE groups (
    id UUID PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    owner_user_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    next_ord BIGINT NOT NULL,
    -- The tree's clock: no entry and no change of a title is older than the one before.
    last_created_at BIGINT NOT NULL,
    -- The greatest (updated_at, id) of its conversations: what `latest-fork` lists.
    latest_updated_at BIGINT NOT NULL,
    latest_conversation_id UUID NOT NULL,
    -- How often what is known of its texts changed other than by appending; with next_ord, what tells an index in memory that
    -- it is behind.
    changes BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
CREATE INDEX groups_by_owner ON groups (tenant, owner_user_id, latest_updated_at, latest_conversation_id)
    WHERE deleted_at IS NULL;
CREATE INDEX groups_deleted ON groups (tenant, deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE conversations (
    tenant TEXT COLLATE "C" NOT NULL,
    id UUID NOT NULL,
    group_id UUID NOT NULL,
    owner_user_id TEXT COLLATE "C" NOT NULL,
    -- The lineage as it is reported: the parent, and the last entry that is included.
    parent_id UUID,
    fork_entry_id UUID,
    has_history BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    title BYTEA,
    preview BYTEA,
    metadata TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX conversations_by_group ON conversations (group_id, id);
CREATE INDEX conversations_by_owner ON conversations (tenant, owner_user_id, updated_at, id) WHERE deleted_at IS NULL;

CREATE TABLE memberships (
    group_id UUID NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    access_level BIGINT NOT NULL, -- 1 owner, 2 manager, 3 writer, 4 reader
    created_at BIGINT NOT NULL,
    PRIMARY KEY (group_id, user_id)
);
-- What others shared with a user; what it owns is found through groups_by_owner.
CREATE INDEX memberships_shared ON memberships (tenant, user_id, group_id) WHERE access_level > 1;
CREATE UNIQUE INDEX memberships_one_owner ON memberships (group_id) WHERE access_level = 1;

-- A fork sees, of each ancestor, the entries up to max_ord. A conversation sees all of its own, without a row here.
CREATE TABLE ancestry (
    group_id UUID NOT NULL,
    descendant UUID NOT NULL,
    depth BIGINT NOT NULL, -- 1 is the parent
    ancestor UUID NOT NULL,
    max_ord BIGINT NOT NULL,
    PRIMARY KEY (group_id, descendant, depth)
);

-- A page of one conversation's history is one range of the key, whatever its siblings hold.
CREATE TABLE entries (
    group_id UUID NOT NULL,
    conversation_id UUID NOT NULL,
    channel BIGINT NOT NULL, -- 1 history, 2 memory
    ord BIGINT NOT NULL,
    id UUID NOT NULL,
    user_id TEXT COLLATE "C",
    client_id TEXT COLLATE "C",
    memory_of TEXT COLLATE "C", -- the client again, for memory entries only
    content_type TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    epoch BIGINT,
    -- Memory only: where the epoch began on this path, and the digest chain up to and including this row.
    epoch_start BIGINT,
    item_count BIGINT,
    chain_digest BYTEA,
    uniform_type TEXT COLLATE "C",
    request_digest BYTEA,
    content BYTEA NOT NULL,
    PRIMARY KEY (group_id, conversation_id, channel, ord)
);
CREATE UNIQUE INDEX entries_by_id ON entries (id);
CREATE INDEX entries_memory ON entries (group_id, conversation_id, memory_of, ord) WHERE memory_of IS NOT NULL;

-- History entries that nobody has given an indexedContent yet: the indexers' work list.
CREATE TABLE unindexed (
    tenant TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    entry_id UUID NOT NULL,
    group_id UUID NOT NULL,
    PRIMARY KEY (tenant, created_at, entry_id)
);

-- What full-text search finds. The numbers of a tree's texts rise in the order of their commits.
CREATE SEQUENCE text_numbers;
CREATE TABLE texts (
    no BIGINT PRIMARY KEY,
    id UUID NOT NULL UNIQUE,
    group_id UUID NOT NULL,
    conversation_id UUID NOT NULL,
    by_agent BIGINT, -- who said it: 1 the agent, 0 the user, null nobody knows
    text BYTEA NOT NULL, -- bytes, because text could not hold U+0000
    -- Its terms, and one more that names its tenant.
    terms TSVECTOR NOT NULL
);
CREATE INDEX texts_by_group ON texts (group_id);
CREATE INDEX texts_by_terms ON texts USING gin (terms);

-- Texts that are to be taken in. Apart, so that taking one in does not write the text and its terms anew.
CREATE TABLE texts_waiting (
    id UUID PRIMARY KEY,
    group_id UUID NOT NULL
);
CREATE INDEX texts_waiting_by_group ON texts_waiting (group_id);

CREATE TABLE idempotency_keys (
    tenant TEXT COLLATE "C" NOT NULL,
    conversation_id UUID NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL, -- '' without a client
    key TEXT COLLATE "C" NOT NULL,
    body_digest BYTEA NOT NULL,
    entry_id UUID NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, conversation_id, user_id, client_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE transfers (
    id UUID PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    group_id UUID NOT NULL UNIQUE,
    conversation_id UUID NOT NULL,
    from_user_id TEXT COLLATE "C" NOT NULL,
    to_user_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX transfers_by_sender ON transfers (tenant, from_user_id, id);
CREATE INDEX transfers_by_recipient ON transfers (tenant, to_user_id, id);

CREATE TABLE tasks (
    id UUID PRIMARY KEY,
    name TEXT COLLATE "C" UNIQUE,
    type TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    retry_at BIGINT NOT NULL,
    retry_count BIGINT NOT NULL,
    claimed_at BIGINT,
    last_error TEXT COLLATE "C"
);
CREATE INDEX tasks_due ON tasks (retry_at);

-- The keys that content is sealed with, wrapped by a configured key.
CREATE TABLE data_keys (
    id BYTEA PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    wrapped BYTEA NOT NULL,
    wrapped_by TEXT COLLATE "C" NOT NULL, -- the name of the configured key
    active BIGINT NOT NULL -- 1: seals what is written now; 0: only opens
);
CREATE UNIQUE INDEX data_keys_active ON data_keys (tenant) WHERE active = 1;

-- A scope is one user of one tenant. Everything of the files surface hangs on its number, so that forgetting a user is one
-- row: without it nothing below can be reached, and what is left is cleared away in peace.
CREATE TABLE scopes (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, -- never used twice
    tenant TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    next_sequence BIGINT NOT NULL, -- of the audit trail
    file_count BIGINT NOT NULL,
    event_count BIGINT NOT NULL,
    open_block BIGINT NOT NULL, -- of the event index: the one that takes the next event
    UNIQUE (tenant, user_id)
);

-- A forget that has not come to its end: what belongs to it was decided when this row was written, and is cleared away in
-- steps. A user may be forgotten again before that, so each has a number of its own.
CREATE TABLE forgotten_users (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C", -- null once nothing is left but what deleted rows left on the disk
    scope_id BIGINT,
    next_change BIGINT NOT NULL, -- of the change feed: where the name is still to be taken off
    last_change BIGINT NOT NULL, -- of the change feed: what came later is not this forget's
    texts BIGINT NOT NULL, -- 1: the full-text index is to be rewritten
    last_memory BIGINT NOT NULL DEFAULT 0 -- memories with a greater number came after it and are not its own
);
-- The trees it owned. From the first moment on nobody can open one of these.
CREATE TABLE forgotten_groups (
    group_id UUID PRIMARY KEY,
    forget_id BIGINT NOT NULL,
    reachable BIGINT NOT NULL -- 1: lists and searches may still name it; 0: only its entries are left
);
CREATE INDEX forgotten_groups_by_forget ON forgotten_groups (forget_id, reachable);
-- The trees of others in which it may have written, before this place in their order.
CREATE TABLE forgotten_members (
    forget_id BIGINT NOT NULL,
    group_id UUID NOT NULL,
    until_ord BIGINT NOT NULL,
    -- The last entry that was looked at.
    conversation_id UUID,
    channel BIGINT,
    ord BIGINT,
    PRIMARY KEY (forget_id, group_id)
);
CREATE INDEX groups_deleted_by_owner ON groups (tenant, owner_user_id) WHERE deleted_at IS NOT NULL;

-- Who was once a member of a tree, and may have written in it.
CREATE TABLE past_members (
    group_id UUID NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (group_id, user_id)
);
CREATE INDEX past_members_by_user ON past_members (tenant, user_id, group_id);
CREATE TABLE files (
    scope_id BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    folded_path TEXT COLLATE "C" NOT NULL, -- what lists are sorted and matched by
    revision BIGINT NOT NULL,
    change_id UUID NOT NULL, -- with the revision: the ETag
    updated_at BIGINT NOT NULL,
    chars BIGINT NOT NULL,
    document BYTEA NOT NULL, -- the envelope as compact JSON, perhaps sealed
    PRIMARY KEY (scope_id, path)
);
CREATE INDEX files_by_folded_path ON files (scope_id, folded_path, path);

CREATE TABLE audit (
    scope_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    change_id UUID NOT NULL UNIQUE,
    at BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    previous_id UUID, -- the change before, null on create
    record BYTEA NOT NULL, -- the rest of the record as JSON, perhaps sealed
    image BYTEA, -- the document after the change, perhaps sealed
    PRIMARY KEY (scope_id, sequence)
);
CREATE INDEX audit_by_path ON audit (scope_id, path, sequence, at); -- with the time, so that retention need not see the rows

CREATE TABLE events (
    scope_id BIGINT NOT NULL,
    block BIGINT NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    timestamp BIGINT NOT NULL,
    event BYTEA NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (scope_id, block, event_id)
);
CREATE UNIQUE INDEX events_by_id ON events (scope_id, event_id);
CREATE INDEX events_by_time ON events (scope_id, timestamp); -- the caller's times follow nothing, so retention needs it

-- The derived index of events: what searches look at, some dozen events to a row.
CREATE TABLE event_blocks (
    scope_id BIGINT NOT NULL,
    block BIGINT NOT NULL,
    body BYTEA NOT NULL, -- perhaps sealed
    PRIMARY KEY (scope_id, block)
);

-- Blocks that searches found damaged, until they are rebuilt.
CREATE TABLE unreadable_blocks (
    scope_id BIGINT NOT NULL,
    block BIGINT NOT NULL,
    found_at BIGINT NOT NULL,
    PRIMARY KEY (scope_id, block)
);

-- Requests that succeeded under an Idempotency-Key, and what they were answered.
CREATE TABLE file_idempotency (
    scope_id BIGINT NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    answer BYTEA NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (scope_id, principal, key)
);
CREATE INDEX file_idempotency_by_age ON file_idempotency (created_at);

-- Long work that somebody asked for and may watch.
CREATE TABLE jobs (
    id UUID PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C", -- null: all of the tenant
    started_by TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL, -- queued, running, succeeded, failed
    created_at BIGINT NOT NULL,
    claimed_at BIGINT, -- when whoever works on it last said so
    processed BIGINT NOT NULL,
    total BIGINT NOT NULL,
    errors TEXT COLLATE "C" NOT NULL -- a JSON array of texts
);
CREATE INDEX jobs_unfinished ON jobs (created_at) WHERE status IN ('queued', 'running');

-- The change feed: what happened, as references, in an order in which nothing comes before what it followed from.
CREATE TABLE changes (
    tenant TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL, -- 1, 2, 3… in each tenant, without gaps, never used twice
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    resource TEXT COLLATE "C", -- null once its user was forgotten
    version TEXT COLLATE "C",
    PRIMARY KEY (tenant, sequence)
);

-- Changes that are written but have no number yet. Numbers are given after the commit, so that writers of one tenant need not
-- wait for each other.
CREATE TABLE changes_outbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token BIGINT NOT NULL, -- what its writer knows it by
    tenant TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C",
    resource TEXT COLLATE "C",
    version TEXT COLLATE "C"
);

-- Search by meaning. All of this is derived from `texts`, in the background: appending writes none of it.

-- What a text is found by: the vectors and the words of its pieces. In the order in which an index in memory takes it in, so
-- that a tree is one range and what is new of it the end of that range.
CREATE TABLE meanings (
    group_id UUID NOT NULL,
    change BIGINT NOT NULL, -- the tree's change that wrote it
    text_no BIGINT NOT NULL,
    entry_id UUID NOT NULL,
    conversation_id UUID NOT NULL,
    ord BIGINT NOT NULL,
    speaker TEXT COLLATE "C", -- '' the agent, null nobody knows
    asks BIGINT NOT NULL, -- 1: it ends with a question
    model TEXT COLLATE "C", -- null while it has no vectors
    pieces BYTEA NOT NULL,
    PRIMARY KEY (group_id, change)
);
CREATE UNIQUE INDEX meanings_by_text ON meanings (text_no);
CREATE INDEX meanings_by_model ON meanings (model, text_no);

-- A scope of memories: a tenant, a layer and the identifiers that the layer requires. Everything below hangs on its number,
-- so that without this row nothing of it can be reached.
CREATE TABLE memory_scopes (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, -- never used twice
    hash BYTEA NOT NULL UNIQUE,
    tenant TEXT COLLATE "C" NOT NULL,
    layer BIGINT NOT NULL, -- 1 agent … 7 company
    user_id TEXT COLLATE "C", -- of personal layers
    session_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL, -- the identifiers' values: a JSON array
    entries BIGINT NOT NULL,
    seq BIGINT NOT NULL, -- the number of its last change
    gone_seq BIGINT NOT NULL -- up to this change, what was removed is not noted any more
);
CREATE INDEX memory_scopes_by_user ON memory_scopes (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX memory_scopes_by_session ON memory_scopes (tenant, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE memories (
    no BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, -- never used twice
    id UUID NOT NULL UNIQUE,
    scope_no BIGINT NOT NULL,
    seq BIGINT NOT NULL, -- the scope's change that it has its row in memory_index under
    kind BIGINT NOT NULL,
    origin_kind BIGINT,
    state BIGINT NOT NULL, -- 0 created, 1 active, 2 decayed, 3 archived
    version BIGINT NOT NULL,
    at BIGINT NOT NULL, -- when it happened, or was made: what lists are sorted by
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    occurred_at BIGINT,
    expires_at BIGINT,
    ttl_seconds BIGINT,
    anchor BIGINT NOT NULL, -- since when it fades
    author_user TEXT COLLATE "C",
    author_client TEXT COLLATE "C",
    shared_by TEXT COLLATE "C", -- the author again, in scopes that are not its own: what forgetting looks for
    policy TEXT COLLATE "C" NOT NULL,
    content BYTEA NOT NULL, -- perhaps sealed
    rest BYTEA NOT NULL -- metadata, fact, lineage and the policy's lists as JSON, perhaps sealed
);
CREATE UNIQUE INDEX memories_by_time ON memories (scope_no, at, id);
CREATE INDEX memories_expiring ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_shared_by ON memories (shared_by) WHERE shared_by IS NOT NULL;

-- What searches look at, in the order in which an index in memory takes it in: `place` is the scope's number × 2^36 and the
-- number of the change. So a scope is one range.
CREATE TABLE memory_index (
    place BIGINT PRIMARY KEY,
    scope_no BIGINT NOT NULL,
    no BIGINT NOT NULL,
    id UUID NOT NULL,
    kind BIGINT NOT NULL,
    state BIGINT NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    author_user TEXT COLLATE "C",
    author_client TEXT COLLATE "C",
    at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    anchor BIGINT NOT NULL,
    relevance DOUBLE PRECISION NOT NULL, -- at the anchor
    fading DOUBLE PRECISION NOT NULL, -- multiplies the daily rate; 0 for what never fades
    model TEXT COLLATE "C", -- none without an embedding
    body BYTEA NOT NULL -- vector, terms, policy's lists and conflict key, perhaps sealed
);
-- What was removed, for indexes that still have it.
CREATE TABLE memory_gone (
    place BIGINT PRIMARY KEY,
    no BIGINT NOT NULL
);

-- Facts by what they state. Digests, because what a fact says may be sealed.
CREATE TABLE memory_facts (
    no BIGINT PRIMARY KEY,
    scope_no BIGINT NOT NULL,
    statement BYTEA NOT NULL, -- of type, subject, predicate and object together
    fact_type BYTEA NOT NULL,
    subject BYTEA NOT NULL,
    predicate BYTEA NOT NULL,
    object BYTEA NOT NULL,
    confidence DOUBLE PRECISION NOT NULL
);
CREATE UNIQUE INDEX memory_facts_once ON memory_facts (scope_no, statement);
CREATE INDEX memory_facts_by_subject ON memory_facts (scope_no, subject, predicate);
CREATE INDEX memory_facts_by_type ON memory_facts (scope_no, fact_type, confidence);

-- How often entries were found; apart, because it says nothing of their versions.
CREATE TABLE memory_uses (
    no BIGINT PRIMARY KEY,
    uses BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);

-- Who made the versions after the first.
CREATE TABLE memory_versions (
    no BIGINT NOT NULL,
    version BIGINT NOT NULL,
    at BIGINT NOT NULL,
    user_id TEXT COLLATE "C",
    client TEXT COLLATE "C",
    shared_by TEXT COLLATE "C", -- the user again, in scopes that are not its own: what forgetting looks for
    PRIMARY KEY (no, version)
);
CREATE INDEX memory_versions_shared_by ON memory_versions (shared_by) WHERE shared_by IS NOT NULL;

-- Scopes that are out of reach and whose entries are still to be cleared away.
CREATE TABLE memory_purges (
    scope_no BIGINT PRIMARY KEY,
    blanked BIGINT NOT NULL, -- 1: none of its entries says anything any more
    -- The last entry that was blanked.
    at BIGINT,
    id UUID
);

-- Vectors that are to be made with a better model than the one at hand when their text was written.
CREATE TABLE memory_upgrades (
    no BIGINT PRIMARY KEY
);

-- Requests that succeeded under an Idempotency-Key, and what they were answered.
CREATE TABLE memory_idempotency (
    tenant TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL, -- behind the route it was used on
    fingerprint BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    answer BYTEA NOT NULL, -- as JSON, perhaps sealed
    PRIMARY KEY (tenant, principal, key)
);
CREATE INDEX memory_idempotency_by_age ON memory_idempotency (created_at);
-- Whom an answer tells of: what forgetting looks for.
CREATE TABLE memory_idempotency_users (
    tenant TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, principal, key, user_id)
);
CREATE INDEX memory_idempotency_by_user ON memory_idempotency_users (tenant, user_id);

-- Entries that point at files, by the document: a digest, since where a pointer leads may be sealed.
CREATE TABLE memory_pointers (
    no BIGINT PRIMARY KEY,
    document BYTEA NOT NULL, -- of the tenant, of the user in personal layers, and of the path
    due BIGINT -- the number of the scope of files whose document changed since the entry was looked at
);
CREATE INDEX memory_pointers_by_document ON memory_pointers (document);
CREATE INDEX memory_pointers_due ON memory_pointers (due) WHERE due IS NOT NULL;

-- A second line behind the conditions of every statement: a unit of work that said whose it is sees nothing of other tenants.
-- One that did not say is the service's own, such as a background job. Everything else hangs on rows of these tables.
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'groups', 'conversations', 'memberships', 'unindexed', 'idempotency_keys', 'transfers', 'scopes', 'forgotten_users', 'past_members', 'jobs', 'changes', 'changes_outbox', 'memory_scopes', 'memory_idempotency', 'memory_idempotency_users', 'data_keys'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING (tenant = current_setting(%L, true) '
            'OR COALESCE(current_setting(%L, true), %L) = %L)',
            name, 'memloom.tenant', 'memloom.tenant', '', '');
    END LOOP;
END
$$;
