-- Lists of a context are ordered by status time too; the index covers the columns that a count needs.
DROP INDEX tasks_context;
CREATE INDEX tasks_context ON tasks (scope, context, status_at DESC, n DESC, visible, state) WHERE context <> n;

-- Number of visible tasks of a list per time bucket, so that a long list is counted without scanning it. A list is all
-- tasks of a scope (context 0) or those that joined a context. A bucket spans from its `at` to the next one of its
-- list, the last bucket to `upto`; later tasks are counted by an index scan. Only lists that were long to count have buckets.
CREATE TABLE tallied (
    scope   INTEGER NOT NULL REFERENCES scopes (id),
    context INTEGER NOT NULL,
    upto    INTEGER NOT NULL,
    PRIMARY KEY (scope, context)
) STRICT, WITHOUT ROWID;
CREATE TABLE tallies (
    scope   INTEGER NOT NULL REFERENCES scopes (id),
    context INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    state   INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (scope, context, at, state)
) STRICT, WITHOUT ROWID;

-- The retention time of a purged task's keys starts when it was purged, however long ago it had ended. For tasks purged
-- before this migration that time is unknown, so theirs starts now.
ALTER TABLE tasks ADD COLUMN purged_at INTEGER;
UPDATE tasks SET purged_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE visible = 3;
DROP INDEX tasks_purged;
CREATE INDEX tasks_purged ON tasks (purged_at) WHERE visible = 3;
