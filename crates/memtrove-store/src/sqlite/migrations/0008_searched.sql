-- How a scope is searched. Always in memory here: other engines have large scopes searched by the database.
ALTER TABLE memory_scopes ADD COLUMN searched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory_scopes ADD COLUMN searched_to INTEGER NOT NULL DEFAULT 0;
