-- Long memories have a vector for each of their pieces besides that of the whole, which stands under 0 and alone has words.

ALTER TABLE memory_vectors ADD COLUMN piece BIGINT NOT NULL DEFAULT 0;
ALTER TABLE memory_vectors DROP CONSTRAINT memory_vectors_pkey;
ALTER TABLE memory_vectors ADD PRIMARY KEY (no, piece);
-- What counts entries leaves pieces out.
DROP INDEX memory_vectors_by_scope;
CREATE INDEX memory_vectors_by_scope ON memory_vectors (scope_no, dimensions, at)
    INCLUDE (kind, state, policy, author_user, author_client, created_at, expires_at, tenant, piece);
