-- Who names no tenant sees nothing. The policies read the tenant from the setting memloom.tenant, which the engine sets as a
-- transaction begins. Without it, or while it is empty, no row is visible and none can be written. The value E'\x01all',
-- which no tenant can have as its name, stands for all of them: background jobs, archives, migrations.

-- Rows of content carry their tenant too. Policies that look for the parent would cost a lookup per row, and could not let a
-- statement pass that writes parent and child at once. A row takes the tenant of the transaction that writes it; under all
-- tenants a trigger takes its parent's, or that of the forget that took the parent away. What is left of anything else that is
-- gone belongs to all tenants: only who clears it away sees it.
CREATE FUNCTION tenant_of_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE(
        (SELECT tenant FROM groups WHERE id = NEW.group_id),
        (SELECT f.tenant FROM forgotten_groups g JOIN forgotten_users f ON f.id = g.forget_id WHERE g.group_id = NEW.group_id),
        NEW.tenant);
    RETURN NEW;
END
$$;
CREATE FUNCTION tenant_of_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE((SELECT tenant FROM forgotten_users WHERE id = NEW.forget_id), NEW.tenant);
    RETURN NEW;
END
$$;
CREATE FUNCTION tenant_of_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE(
        (SELECT tenant FROM scopes WHERE id = NEW.scope_id),
        (SELECT tenant FROM forgotten_users WHERE scope_id = NEW.scope_id LIMIT 1),
        NEW.tenant);
    RETURN NEW;
END
$$;
CREATE FUNCTION tenant_of_memory_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE((SELECT tenant FROM memory_scopes WHERE id = NEW.scope_no), NEW.tenant);
    RETURN NEW;
END
$$;
CREATE FUNCTION tenant_of_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE((SELECT tenant FROM memories WHERE no = NEW.no), NEW.tenant);
    RETURN NEW;
END
$$;
CREATE FUNCTION tenant_of_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := COALESCE((SELECT tenant FROM memory_scopes WHERE id = NEW.place >> 36), NEW.tenant);
    RETURN NEW;
END
$$;

-- Each table with how its rows find their tenant: the trigger, and the same for the rows that are there. Memories come before
-- what hangs on them.
DO $$
DECLARE
    line TEXT[];
    of_group TEXT := 'SELECT o.tenant FROM groups o WHERE o.id = t.group_id UNION ALL '
                     'SELECT f.tenant FROM forgotten_groups o JOIN forgotten_users f ON f.id = o.forget_id '
                     'WHERE o.group_id = t.group_id LIMIT 1';
    of_forget TEXT := 'SELECT o.tenant FROM forgotten_users o WHERE o.id = t.forget_id';
    of_scope TEXT := 'SELECT o.tenant FROM scopes o WHERE o.id = t.scope_id UNION ALL '
                     'SELECT f.tenant FROM forgotten_users f WHERE f.scope_id = t.scope_id LIMIT 1';
    of_memory_scope TEXT := 'SELECT o.tenant FROM memory_scopes o WHERE o.id = t.scope_no';
    of_memory TEXT := 'SELECT o.tenant FROM memories o WHERE o.no = t.no';
    of_place TEXT := 'SELECT o.tenant FROM memory_scopes o WHERE o.id = t.place >> 36';
    every_tenant TEXT := E'\x01all';
BEGIN
    FOREACH line SLICE 1 IN ARRAY ARRAY[
        ['ancestry', 'tenant_of_group', of_group],
        ['entries', 'tenant_of_group', of_group],
        ['texts', 'tenant_of_group', of_group],
        ['texts_waiting', 'tenant_of_group', of_group],
        ['meanings', 'tenant_of_group', of_group],
        ['forgotten_groups', 'tenant_of_forget', of_forget],
        ['forgotten_members', 'tenant_of_forget', of_forget],
        ['files', 'tenant_of_scope', of_scope],
        ['audit', 'tenant_of_scope', of_scope],
        ['events', 'tenant_of_scope', of_scope],
        ['event_blocks', 'tenant_of_scope', of_scope],
        ['unreadable_blocks', 'tenant_of_scope', of_scope],
        ['file_idempotency', 'tenant_of_scope', of_scope],
        ['memories', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_index', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_facts', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_purges', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_vectors', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_common_terms', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_texts', 'tenant_of_memory_scope', of_memory_scope],
        ['memory_uses', 'tenant_of_memory', of_memory],
        ['memory_versions', 'tenant_of_memory', of_memory],
        ['memory_upgrades', 'tenant_of_memory', of_memory],
        ['memory_pointers', 'tenant_of_memory', of_memory],
        ['memory_gone', 'tenant_of_place', of_place],
        ['tasks', NULL, 'NULL']
    ] LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN tenant TEXT COLLATE "C"', line[1]);
        EXECUTE format('UPDATE %I t SET tenant = COALESCE((%s), %L)', line[1], line[3], every_tenant);
        EXECUTE format(
            'ALTER TABLE %I ALTER COLUMN tenant SET NOT NULL, '
            'ALTER COLUMN tenant SET DEFAULT current_setting(''memloom.tenant'', true)', line[1]);
        IF line[2] IS NOT NULL THEN
            EXECUTE format(
                'CREATE TRIGGER tenant_of_parent BEFORE INSERT ON %I FOR EACH ROW WHEN (NEW.tenant = %L) EXECUTE FUNCTION %I()',
                line[1], every_tenant, line[2]);
        END IF;
    END LOOP;
END
$$;

-- What counts entries and looks for old ones reads nothing but these, and the policy reads the tenant.
DROP INDEX memory_vectors_by_scope;
CREATE INDEX memory_vectors_by_scope ON memory_vectors (scope_no, dimensions, at)
    INCLUDE (kind, state, policy, author_user, author_client, created_at, expires_at, tenant);
DROP INDEX audit_by_path;
CREATE INDEX audit_by_path ON audit (scope_id, path, sequence, at) INCLUDE (tenant);

-- An index of terms is only used where no policy stands before it: the database does not know that finding a term tells nobody
-- anything. A search by terms names the tenant or the scope in its terms, and says so by this setting for its one statement.
-- Immutable, so that the planner sees the answer and drops the policy. The engine sends such statements with the setting
-- only and all others without it, so that a plan that is kept fits.
CREATE FUNCTION names_tenant_in_terms() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT COALESCE(current_setting('memtrove.names_tenant_in_terms', true), '') = 'on'
$$;

DO $$
DECLARE
    name TEXT;
    -- Each setting is read once for a statement, not for every row.
    visible TEXT := 'tenant = (SELECT NULLIF(current_setting(''memloom.tenant'', true), '''')) '
                    'OR (SELECT current_setting(''memloom.tenant'', true) = E''\x01all'')';
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'ancestry', 'attachments', 'audit', 'changes', 'changes_outbox', 'conversations', 'data_keys', 'entries',
        'event_blocks', 'events', 'file_idempotency', 'files', 'forgotten_groups', 'forgotten_members',
        'forgotten_users', 'groups', 'idempotency_keys', 'jobs', 'meanings', 'memberships', 'memories',
        'memory_common_terms', 'memory_facts', 'memory_gone', 'memory_idempotency', 'memory_idempotency_users',
        'memory_index', 'memory_pointers', 'memory_purges', 'memory_scopes', 'memory_texts', 'memory_upgrades',
        'memory_uses', 'memory_vectors', 'memory_versions', 'past_members', 'recordings', 'scopes', 'stream_events',
        'stream_kept', 'tasks', 'texts', 'texts_waiting', 'transfers', 'unindexed', 'unreadable_blocks'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS one_tenant ON %I', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I USING (%s%s)', name,
            CASE WHEN name IN ('texts', 'memory_vectors') THEN 'names_tenant_in_terms() OR ' ELSE '' END, visible);
    END LOOP;
END
$$;
