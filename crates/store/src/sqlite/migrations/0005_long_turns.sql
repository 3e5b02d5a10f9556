-- Crashes of the current turn; `deaths` are those since its last progress.
ALTER TABLE tasks ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
-- 1: the run is on probation, because the task was running when processes crashed. 2: its process crashed meanwhile.
ALTER TABLE tasks ADD COLUMN probation INTEGER NOT NULL DEFAULT 0;
-- Bytes of the log that are progress messages.
ALTER TABLE tasks ADD COLUMN progress_size INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET crashes = deaths WHERE deaths > 0 AND state IN (1, 2);

-- Suspects are read together with all other due work.
DROP INDEX tasks_suspects;

-- Open tasks with a deadline. Earlier versions never set one.
CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL AND state IN (1, 2, 6, 8);

-- The journal: the outputs of a turn's finished steps. `turn` is the number of the entry with the turn's message. The
-- output of a step that has begun and not finished is NULL.
CREATE TABLE journal (
    n      INTEGER NOT NULL REFERENCES tasks (n),
    turn   INTEGER NOT NULL,
    step   TEXT    NOT NULL,
    output BLOB,
    PRIMARY KEY (n, turn, step)
) STRICT;

-- Visible tasks that wait for their client, and since when. `skill` is empty where the task has none.
CREATE TABLE waiting (
    n      INTEGER PRIMARY KEY REFERENCES tasks (n),
    tenant TEXT    NOT NULL,
    agent  TEXT    NOT NULL,
    skill  TEXT    NOT NULL,
    since  INTEGER NOT NULL
) STRICT;
INSERT INTO waiting (n, tenant, agent, skill, since)
SELECT n, tenant, agent, coalesce(skill, ''), status_at
FROM tasks INDEXED BY tasks_waiting JOIN scopes ON scopes.id = tasks.scope WHERE visible = 1 AND state IN (6, 8);
CREATE INDEX waiting_agent ON waiting (tenant, agent, skill, since, n);
DROP INDEX tasks_waiting;
