-- Settings of this store: the keys generated with it, the boot number, the next free task number.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Scopes (owners of tasks), interned: task rows refer to them by id.
CREATE TABLE scopes (
    id        INTEGER PRIMARY KEY,
    tenant    TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent     TEXT NOT NULL,
    end_user  TEXT NOT NULL,
    UNIQUE (tenant, principal, agent, end_user)
) STRICT;

-- One small row per task; bodies are in segments.
CREATE TABLE tasks (
    n            INTEGER PRIMARY KEY,
    tag          BLOB    NOT NULL CHECK (length(tag) = 10),
    scope        INTEGER NOT NULL REFERENCES scopes (id),
    context      INTEGER NOT NULL,             -- the first task of the conversation
    context_tag  BLOB,                         -- copied from there into each follower
    context_name TEXT,                         -- where a client named the conversation
    client_id    TEXT,                         -- where a client named the task
    state        INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8),
    status_at    INTEGER NOT NULL,
    turn         INTEGER NOT NULL DEFAULT 1,
    last_seq     INTEGER NOT NULL CHECK (last_seq >= 1),
    fence        INTEGER NOT NULL DEFAULT 0,
    attempt      INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    deaths       INTEGER NOT NULL DEFAULT 0,
    unanswered   INTEGER NOT NULL DEFAULT 0,
    boot         INTEGER NOT NULL DEFAULT 0,   -- the process that holds the work; 0 is nobody
    next_run_at  INTEGER,                      -- when unheld work is due
    deadline     INTEGER,
    terminal_at  INTEGER,
    visible      INTEGER NOT NULL CHECK (visible BETWEEN 0 AND 3),
    size         INTEGER NOT NULL,             -- bytes of its log
    doc          INTEGER NOT NULL DEFAULT 0,   -- up to which entry its doc holds
    tail         INTEGER NOT NULL DEFAULT 1,   -- segments behind that
    key          BLOB,                         -- the first message's idempotency key, and what it was used for
    hash         BLOB,
    skill        TEXT,
    origin       INTEGER NOT NULL DEFAULT 0,   -- the dialect that made the task
    CHECK (boot = 0 OR next_run_at IS NULL),
    CHECK (state IN (1, 2) OR (boot = 0 AND next_run_at IS NULL))
) STRICT;

CREATE INDEX tasks_listed ON tasks (scope, status_at DESC, n DESC) WHERE visible = 1;
CREATE INDEX tasks_uncompleted ON tasks (scope, state, status_at DESC, n DESC) WHERE visible = 1 AND state <> 3;
CREATE INDEX tasks_hidden ON tasks (scope, status_at) WHERE visible = 2;
CREATE INDEX tasks_purged ON tasks (terminal_at) WHERE visible = 3;
CREATE INDEX tasks_context ON tasks (scope, context, n) WHERE context <> n;
CREATE INDEX tasks_named_context ON tasks (scope, context_name, n) WHERE context_name IS NOT NULL;
CREATE UNIQUE INDEX tasks_client_id ON tasks (scope, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX tasks_due ON tasks (next_run_at, n) WHERE next_run_at IS NOT NULL;
CREATE INDEX tasks_held ON tasks (boot) WHERE boot > 0;

-- The log: one row per task and commit. The key is n * 2^24 + first_seq, so that one table in rowid order is
-- clustered by task and sequence number, mostly appended at its end, and needs no further index.
CREATE TABLE segments (
    place    INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    bytes    BLOB    NOT NULL
) STRICT;

-- The folded task as of a sequence number, so that long logs are not replayed from their beginning.
CREATE TABLE docs (
    n      INTEGER PRIMARY KEY REFERENCES tasks (n),
    at_seq INTEGER NOT NULL,
    bytes  BLOB    NOT NULL
) STRICT;

-- The last checkpoint that the task's agent saved.
CREATE TABLE saved (
    n       INTEGER PRIMARY KEY REFERENCES tasks (n),
    attempt INTEGER NOT NULL,
    bytes   BLOB    NOT NULL
) STRICT;

-- Idempotency keys of messages after the first.
CREATE TABLE turn_keys (
    n    INTEGER NOT NULL REFERENCES tasks (n),
    key  BLOB    NOT NULL,
    hash BLOB    NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (n, key)
) STRICT, WITHOUT ROWID;

-- Idempotency keys of first messages: immutable sorted runs, each a Bloom filter, the first key of every page (column
-- `fences`), and pages of (key, n). Keys newer than the last run are in memory, rebuilt from the task rows after a
-- restart. The primary key of a page is run * 2^24 + page number.
CREATE TABLE key_runs (
    id     INTEGER PRIMARY KEY,
    last_n INTEGER NOT NULL,                   -- rows up to here are in this run or an earlier one
    max_n  INTEGER NOT NULL,                   -- no row behind this is in it
    filter BLOB    NOT NULL,
    fences BLOB    NOT NULL
) STRICT;
CREATE TABLE key_pages (
    place INTEGER PRIMARY KEY,
    bytes BLOB    NOT NULL
) STRICT;

-- Number of visible tasks per scope and state.
CREATE TABLE counts (
    scope INTEGER NOT NULL REFERENCES scopes (id),
    state INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (scope, state)
) STRICT, WITHOUT ROWID;
