-- Search by meaning. All of this is derived from `texts`, in the background: appending writes none of it.

-- How often what is known of a tree's texts changed other than by appending; with next_ord, what tells an index in memory
-- that it is behind.
ALTER TABLE groups ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
-- Who said it: 1 the agent, 0 the user, null nobody knows.
ALTER TABLE texts ADD COLUMN by_agent INTEGER;

-- What a text is found by: the vectors and the words of its pieces. In the order in which an index in memory takes it in, so
-- that a tree is one range and what is new of it the end of that range.
CREATE TABLE meanings (
    group_id        BLOB NOT NULL,
    change          INTEGER NOT NULL, -- the tree's change that wrote it
    text_no         INTEGER NOT NULL,
    entry_id        BLOB NOT NULL,
    conversation_id BLOB NOT NULL,
    ord             INTEGER NOT NULL,
    speaker         TEXT, -- '' the agent, null nobody knows
    asks            INTEGER NOT NULL, -- 1: it ends with a question
    model           TEXT, -- null while it has no vectors
    pieces          BLOB NOT NULL,
    PRIMARY KEY (group_id, change)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX meanings_by_text ON meanings (text_no);
CREATE INDEX meanings_by_model ON meanings (model, text_no);

-- The last text that was taken in. Texts are numbered in the order they are written, one that is replaced anew, and never
-- with a number up to this one.
CREATE TABLE meanings_progress (text_no INTEGER NOT NULL) STRICT;
INSERT INTO meanings_progress (text_no) VALUES (0);
