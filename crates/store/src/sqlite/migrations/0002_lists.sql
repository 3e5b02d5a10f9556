-- A conversation is listed by the time of its tasks' statuses too; what a count asks for is in the index.
DROP INDEX tasks_context;
CREATE INDEX tasks_context ON tasks (scope, context, status_at DESC, n DESC, visible, state) WHERE context <> n;

-- How many visible tasks a list has, by stretches of time, so that a long one is counted without walking it. A list is
-- all tasks of an owner (context 0) or those that joined a conversation. A stretch reaches from its `at` to the next one
-- of its list, the last one to `upto`; behind that the list is walked. Lists that nobody found long have none.
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

-- The keys of a forgotten task are kept from the moment it was emptied, however long ago it had ended. When those that
-- are here were emptied nobody knows: they are kept from now on.
ALTER TABLE tasks ADD COLUMN purged_at INTEGER;
UPDATE tasks SET purged_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE visible = 3;
DROP INDEX tasks_purged;
CREATE INDEX tasks_purged ON tasks (purged_at) WHERE visible = 3;
