-- Fills an empty database of Memtrove with :n entries, shaped like the product's use: a user for twenty entries, one to three
-- conversations each, a few of which are long, and one that holds a tenth of everything. What is written at the same time
-- belongs to many conversations, so nobody's entries lie together. The same rows in every run.
\set ON_ERROR_STOP on
SET jit = off;
SET client_min_messages = error;
SET synchronous_commit = off;
SET work_mem = '256MB';
SET maintenance_work_mem = '1GB';

-- Ids in the order of time, as UUIDv7 has them.
CREATE FUNCTION pg_temp.id(kind TEXT, number BIGINT) RETURNS UUID IMMUTABLE LANGUAGE sql AS $$
    SELECT CAST(lpad(to_hex(1763000000000 + number), 12, '0') || '7' || substr(digest, 1, 3) || '8' || substr(digest, 4, 15) AS UUID)
    FROM (SELECT md5(kind || number)) AS made (digest)
$$;
-- Between 0 and 1, and always the same for the same words.
CREATE FUNCTION pg_temp.chance(what TEXT) RETURNS DOUBLE PRECISION IMMUTABLE LANGUAGE sql AS $$
    SELECT (hashtextextended(what, 7) & 4294967295) / CAST(4294967296 AS DOUBLE PRECISION)
$$;
CREATE TEMP TABLE chats AS
SELECT number, pg_temp.id('conversation', number) AS id, pg_temp.id('group', number) AS group_id,
    -- Whoever owns the long one owns nothing else.
    CASE WHEN number = 0 THEN 'user-long' ELSE 'user-' || number / 2 + CASE number % 3 WHEN 0 THEN 1 ELSE 0 END END AS owner
FROM generate_series(0, :n / 10) AS numbers (number);

CREATE TEMP TABLE written AS
SELECT number, chat, row_number() OVER (PARTITION BY chat ORDER BY number) AS ord,
    CASE WHEN number / 10 % 10 = 5 THEN 2 ELSE 1 END AS channel, words
FROM (
    SELECT number, CASE WHEN number % 10 = 0 THEN 0
        ELSE 1 + CAST(floor(:n / 10 * power(pg_temp.chance('chat' || number), 2)) AS BIGINT) END AS chat
    FROM generate_series(CAST(1 AS BIGINT), :n) AS numbers (number)
) AS entries,
-- Forty words, some of them in every second text, most of them seldom; none is the beginning of another.
LATERAL (
    SELECT array_agg('w' || lpad(to_hex(CAST(power(CAST(20000 AS DOUBLE PRECISION), chance) AS BIGINT) * 7919 % 16777213), 6, '0'))
    FROM generate_series(1, 40) AS places (place),
    LATERAL (SELECT (hashint8extended(number, place) & 4294967295) / CAST(4294967296 AS DOUBLE PRECISION)) AS drawn (chance)
) AS said (words);
CREATE INDEX ON written (number);
ANALYZE chats, written;
-- What the server itself wrote shows how a text names its tenant.
CREATE TEMP TABLE model_text AS
SELECT term AS tenant FROM texts, unnest(tsvector_to_array(terms)) AS terms (term) WHERE term LIKE '§t%' LIMIT 1;

INSERT INTO groups (id, tenant, owner_user_id, created_at, next_ord, last_created_at, latest_updated_at, latest_conversation_id)
SELECT c.group_id, 'default', c.owner, 1763000000000000, COALESCE(w.ord, 0) + 1, at, at, c.id
FROM chats c LEFT JOIN (SELECT chat, MAX(ord), MAX(number) FROM written GROUP BY chat) AS w (chat, ord, last) ON w.chat = c.number,
LATERAL (SELECT 1763000000000000 + COALESCE(w.last, 0) * 1000) AS times (at);

INSERT INTO conversations (tenant, id, group_id, owner_user_id, has_history, created_at, updated_at, title, preview, metadata)
SELECT 'default', c.id, c.group_id, c.owner, 1, g.created_at, g.latest_updated_at, convert_to('Chat ' || c.number, 'UTF8'),
    convert_to('What was said last', 'UTF8'), '{}'
FROM chats c JOIN groups g ON g.id = c.group_id;

INSERT INTO memberships (group_id, user_id, tenant, access_level, created_at)
SELECT group_id, owner, 'default', 1, 1763000000000000 FROM chats
UNION ALL
-- One tree in a hundred is shared.
SELECT group_id, 'user-' || (number * 7 % (:n / 20)), 'default', 3, 1763000000000000 FROM chats WHERE number % 100 = 99;

INSERT INTO entries (group_id, conversation_id, channel, ord, id, user_id, client_id, memory_of, content_type, created_at, epoch,
    epoch_start, item_count, chain_digest, uniform_type, content)
SELECT c.group_id, c.id, w.channel, w.ord, pg_temp.id('entry', w.number), c.owner, agent, agent, kind, 1763000000000000 + w.number * 1000,
    CASE WHEN w.channel = 2 THEN 1 + w.ord / 50 END, CASE WHEN w.channel = 2 THEN w.ord / 50 * 50 END, CASE WHEN w.channel = 2 THEN w.ord END,
    CASE WHEN w.channel = 2 THEN sha256(CAST(CAST(w.number AS TEXT) AS BYTEA)) END, CASE WHEN w.channel = 2 THEN kind END,
    convert_to('[{"role":"USER","text":"' || array_to_string(w.words, ' ') || '"}]', 'UTF8')
FROM written w JOIN chats c ON c.number = w.chat,
LATERAL (SELECT CASE WHEN w.channel = 2 THEN 'agent' END, CASE WHEN w.channel = 2 THEN 'message' ELSE 'history' END) AS said (agent, kind)
ORDER BY w.number;

-- A text's terms and its tenant's name. An index that is built at the end is as it is after a vacuum.
DROP INDEX texts_by_terms;
INSERT INTO texts (no, id, group_id, conversation_id, by_agent, text, terms)
SELECT nextval('text_numbers'), pg_temp.id('entry', w.number), c.group_id, c.id, 0, convert_to(array_to_string(w.words, ' '), 'UTF8'),
    array_to_tsvector(w.words || (SELECT tenant FROM model_text))
FROM written w JOIN chats c ON c.number = w.chat
WHERE w.channel = 1
ORDER BY w.number;
CREATE INDEX texts_by_terms ON texts USING gin (terms);

INSERT INTO changes (tenant, sequence, at, kind, user_id, resource, version)
SELECT 'default', m.last + w.number, 1763000000000000 + w.number * 1000, 'entry.appended', c.owner, CAST(c.id AS TEXT),
    CAST(pg_temp.id('entry', w.number) AS TEXT)
FROM written w JOIN chats c ON c.number = w.chat, (SELECT MAX(sequence) FROM changes) AS m (last) ORDER BY w.number;

-- A memory for five entries, a tenth of them in the scope of a project, a hundred in that of the user who is asked for. The
-- first of each is there and shows what the others look like.
CREATE TEMP TABLE scopes_made AS
WITH made AS (
    INSERT INTO memory_scopes (hash, tenant, layer, user_id, name, entries, seq, gone_seq)
    SELECT sha256(CAST('user-' || number AS BYTEA)), tenant, layer, 'user-' || number, '["user-' || number || '"]', 8, 8, 0
    FROM memory_scopes, generate_series(1, :n / 50) AS numbers (number) WHERE user_id = 'model' RETURNING id
)
SELECT id, row_number() OVER (ORDER BY id) AS number FROM made;
INSERT INTO memories (id, scope_no, seq, kind, origin_kind, state, version, at, created_at, updated_at, anchor, author_user,
    author_client, shared_by, policy, content, rest)
SELECT pg_temp.id('memory', w.number), CASE WHEN w.number % 10 = 0 THEN p.scope_no
        WHEN w.number % (:n / 500) = 1 THEN m.scope_no ELSE s.id END, w.number, m.kind, m.origin_kind, m.state,
    m.version, t.at, t.at, t.at, t.at, m.author_user, m.author_client, CASE WHEN w.number % 10 = 0 THEN p.shared_by END, m.policy,
    m.content, m.rest
FROM generate_series(2, :n / 5) AS w (number)
JOIN scopes_made s ON s.number = 1 + (hashint8(w.number) & 1073741823) % (:n / 50),
(SELECT m.* FROM memories m JOIN memory_scopes s ON s.id = m.scope_no WHERE s.user_id = 'model') AS m,
(SELECT m.* FROM memories m JOIN memory_scopes s ON s.id = m.scope_no WHERE s.user_id IS NULL) AS p,
LATERAL (SELECT 1763000000000000 + CAST(w.number AS BIGINT) * 5000) AS t (at);

INSERT INTO memory_index (place, scope_no, no, id, kind, state, policy, author_user, author_client, at, created_at, updated_at, anchor,
    relevance, fading, model, body)
SELECT m.scope_no * (CAST(1 AS BIGINT) << 36) + m.seq, m.scope_no, m.no, m.id, i.kind, i.state, i.policy, i.author_user, i.author_client,
    m.at, m.at, m.at, m.at, i.relevance, i.fading, i.model, i.body
FROM memories m, (SELECT * FROM memory_index ORDER BY place LIMIT 1) AS i
WHERE NOT EXISTS (SELECT 1 FROM memory_index there WHERE there.no = m.no);
UPDATE memory_scopes s SET seq = :n / 5, entries = (SELECT COUNT(*) FROM memories m WHERE m.scope_no = s.id);

VACUUM ANALYZE;
