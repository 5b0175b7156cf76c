-- The change feed: what happened, in the order of the commits, as references. Written with every change, so it has no index
-- besides its key, and its rows go to the end.
CREATE TABLE changes (
    tenant   TEXT NOT NULL,
    sequence INTEGER NOT NULL, -- 1, 2, 3… in each tenant, without gaps, never used twice
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    user_id  TEXT,
    resource TEXT, -- null once its user was forgotten
    version  TEXT,
    PRIMARY KEY (tenant, sequence)
) STRICT, WITHOUT ROWID;
