-- How many webhooks a task has: a commit of a task without any reads nothing more.
ALTER TABLE tasks ADD COLUMN webhooks INTEGER NOT NULL DEFAULT 0;

-- Webhooks and how far each was notified. The log of a task has no gaps, so `acked_seq` is the whole outbox: entries up to
-- it were delivered, were not wanted, or were given up. `sealed` is the URL with all secrets, `host` is tenant and host.
-- `number` is never used again, because notifications are named by it.
CREATE TABLE webhooks (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    n         INTEGER NOT NULL REFERENCES tasks (n),
    id        TEXT    NOT NULL,
    dialect   INTEGER NOT NULL,
    style     INTEGER NOT NULL,
    events    INTEGER NOT NULL,
    host      TEXT    NOT NULL,
    sealed    BLOB    NOT NULL,
    acked_seq INTEGER NOT NULL,
    -- Entries after this one belong to a later turn.
    until_seq INTEGER,
    -- When the next attempt is due, and since when there has been something to deliver; NULL if there is nothing.
    next_at   INTEGER,
    due_since INTEGER,
    attempts  INTEGER NOT NULL DEFAULT 0,
    error     TEXT,
    delivered INTEGER NOT NULL DEFAULT 0,
    disabled  INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1)),
    CHECK ((next_at IS NULL) = (due_since IS NULL)),
    UNIQUE (n, id)
) STRICT;
CREATE INDEX webhooks_due ON webhooks (next_at, host, due_since) WHERE next_at IS NOT NULL;

-- Notifications that were given up. They outlive their task and their webhook.
CREATE TABLE dead_letters (
    letter     INTEGER PRIMARY KEY AUTOINCREMENT,
    n          INTEGER NOT NULL,
    tag        BLOB    NOT NULL,
    task_id    TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    principal  TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    end_user   TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    dialect    INTEGER NOT NULL,
    style      INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    host       TEXT    NOT NULL,
    sealed     BLOB    NOT NULL,
    seq        INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    error      TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    died_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_letters_age ON dead_letters (died_at);
