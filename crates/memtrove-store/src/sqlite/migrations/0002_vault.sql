-- The keys that content is sealed with, wrapped by a configured key.
CREATE TABLE data_keys (
    id         BLOB PRIMARY KEY,
    tenant     TEXT NOT NULL,
    wrapped    BLOB NOT NULL,
    wrapped_by TEXT NOT NULL, -- the name of the configured key
    active     INTEGER NOT NULL -- 1: seals what is written now; 0: only opens
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX data_keys_active ON data_keys (tenant) WHERE active = 1;

-- Titles and previews may be sealed, and are bytes then.
CREATE TABLE conversations_with_bytes (
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
    title         BLOB,
    preview       BLOB,
    metadata      TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
INSERT INTO conversations_with_bytes
    SELECT tenant, id, group_id, owner_user_id, parent_id, fork_entry_id, has_history, created_at, updated_at, deleted_at,
           CAST(title AS BLOB), CAST(preview AS BLOB), metadata
    FROM conversations ORDER BY tenant, id;
DROP TABLE conversations;
ALTER TABLE conversations_with_bytes RENAME TO conversations;
CREATE INDEX conversations_by_group ON conversations (group_id, id);
CREATE INDEX conversations_by_owner ON conversations (tenant, owner_user_id, updated_at, id) WHERE deleted_at IS NULL;

-- What was written so far is plain.
INSERT INTO meta (key, value) SELECT 'plain_content', x'01' WHERE EXISTS (SELECT 1 FROM conversations);
