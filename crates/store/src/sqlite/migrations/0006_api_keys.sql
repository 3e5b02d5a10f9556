-- API keys. The text of a key is not here: `digest` is its SHA-256, `prefix` and `ending` are its first and last
-- characters, which lists show.
CREATE TABLE api_keys (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE CHECK (length(id) BETWEEN 1 AND 64),
    tenant     TEXT    NOT NULL CHECK (length(tenant) BETWEEN 1 AND 64),
    agent      TEXT    NOT NULL CHECK (length(agent) BETWEEN 1 AND 64),
    owner      TEXT    NOT NULL CHECK (length(owner) BETWEEN 1 AND 128),
    prefix     TEXT    NOT NULL CHECK (length(prefix) <= 32),
    ending     TEXT    NOT NULL CHECK (length(ending) <= 8),
    digest     BLOB    NOT NULL CHECK (length(digest) = 32),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_valid ON api_keys (tenant, agent) WHERE revoked_at IS NULL;
