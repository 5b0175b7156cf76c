-- Which node holds the recording of a conversation's response. A row is believed for seconds and confirmed while the recording
-- goes on, so a crash of the database may empty the table: nodes tell again what they hold.
CREATE UNLOGGED TABLE recordings (
    tenant TEXT COLLATE "C" NOT NULL,
    conversation_id UUID NOT NULL,
    recording UUID NOT NULL,
    node UUID NOT NULL, -- new with every start: an address may be that of several, at once or one after the other
    host TEXT COLLATE "C" NOT NULL,
    port BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- by the database's clock: those of nodes need not agree
    PRIMARY KEY (tenant, conversation_id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX recordings_by_id ON recordings (recording);

-- The second line behind the conditions of every statement, as for other tables.
ALTER TABLE recordings ENABLE ROW LEVEL SECURITY;
ALTER TABLE recordings FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON recordings USING (tenant = current_setting('memloom.tenant', true)
    OR COALESCE(current_setting('memloom.tenant', true), '') = '');
