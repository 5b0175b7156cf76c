-- Files that belong to entries. Their bytes are in an object store, under a key that several records may share.
CREATE TABLE attachments (
    id           BLOB PRIMARY KEY,
    tenant       TEXT NOT NULL,
    storage_key  TEXT NOT NULL,
    user_id      TEXT, -- who brought it; null once that user was forgotten
    group_id     BLOB, -- the tree of the entry it belongs to
    entry_id     BLOB,
    status       INTEGER NOT NULL, -- 1 uploading, 2 downloading, 3 ready, 4 failed
    content_type TEXT NOT NULL,
    size         INTEGER,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER, -- null once it belongs to an entry
    deleted_at   INTEGER, -- from then on only its bytes are left to go
    details      BLOB NOT NULL -- name, source, digest and key of the bytes as JSON, perhaps sealed
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_key ON attachments (storage_key);
CREATE INDEX attachments_by_age ON attachments (tenant, created_at, id);
CREATE INDEX attachments_by_user ON attachments (tenant, user_id, created_at, id);
CREATE INDEX attachments_by_group ON attachments (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX attachments_by_entry ON attachments (entry_id) WHERE entry_id IS NOT NULL;
CREATE INDEX attachments_by_expiry ON attachments (expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX attachments_deleted ON attachments (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX attachments_downloading ON attachments (created_at) WHERE status = 2;
