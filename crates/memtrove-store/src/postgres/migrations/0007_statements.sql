-- What entries are found by: see `store/memories/statements.rs`. Entries that are there already get theirs from the server that
-- starts.
ALTER TABLE memories ADD COLUMN words BYTEA; -- the digest of what it says, normalised, perhaps keyed; null until it is made
ALTER TABLE memories ADD COLUMN statement BYTEA; -- of one entry of those that state the same
CREATE UNIQUE INDEX memories_by_words ON memories (scope_no, words, statement);
CREATE INDEX memories_without_words ON memories (scope_no) WHERE words IS NULL;
