-- What entries said before a version that says something else. Bound to the entry's id, which moves with it into other stores.
CREATE TABLE memory_texts (
    id UUID NOT NULL,
    version BIGINT NOT NULL, -- the one that says something else
    scope_no BIGINT NOT NULL,
    at BIGINT NOT NULL,
    text BYTEA NOT NULL, -- perhaps sealed
    PRIMARY KEY (id, version)
);
