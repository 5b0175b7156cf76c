-- What entries said before a version that says something else. Bound to the entry's id, which moves with it into other stores.
CREATE TABLE memory_texts (
    id       BLOB NOT NULL,
    version  INTEGER NOT NULL, -- the one that says something else
    scope_no INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    text     BLOB NOT NULL, -- perhaps sealed
    PRIMARY KEY (id, version)
) STRICT, WITHOUT ROWID;
