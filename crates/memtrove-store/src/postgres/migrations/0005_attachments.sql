-- Files that belong to entries. Their bytes are in an object store, under a key that several records may share.
CREATE TABLE attachments (
    id UUID PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    storage_key TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C", -- who brought it; null once that user was forgotten
    group_id UUID, -- the tree of the entry it belongs to
    entry_id UUID,
    status BIGINT NOT NULL, -- 1 uploading, 2 downloading, 3 ready, 4 failed
    content_type TEXT COLLATE "C" NOT NULL,
    size BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT, -- null once it belongs to an entry
    deleted_at BIGINT, -- from then on only its bytes are left to go
    details BYTEA NOT NULL -- name, source, digest and key of the bytes as JSON, perhaps sealed
);
CREATE INDEX attachments_by_key ON attachments (storage_key);
CREATE INDEX attachments_by_age ON attachments (tenant, created_at, id);
CREATE INDEX attachments_by_user ON attachments (tenant, user_id, created_at, id);
CREATE INDEX attachments_by_group ON attachments (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX attachments_by_entry ON attachments (entry_id) WHERE entry_id IS NOT NULL;
CREATE INDEX attachments_by_expiry ON attachments (expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX attachments_deleted ON attachments (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX attachments_downloading ON attachments (created_at) WHERE status = 2;

-- The second line behind the conditions of every statement, as for all tables that name their tenant.
ALTER TABLE attachments ENABLE ROW LEVEL SECURITY;
ALTER TABLE attachments FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON attachments USING (tenant = current_setting('memloom.tenant', true)
    OR COALESCE(current_setting('memloom.tenant', true), '') = '');
