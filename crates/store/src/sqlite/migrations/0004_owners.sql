-- The smallest task number of a run of idempotency keys, so that a run whose tasks are all deleted is found. Unknown for
-- older runs.
ALTER TABLE key_runs ADD COLUMN min_n INTEGER NOT NULL DEFAULT 0;

-- No finished task of a scope has a status before this time. The index finds the owners of an agent whose tasks may have
-- expired, and all agents.
ALTER TABLE scopes ADD COLUMN ended_from INTEGER NOT NULL DEFAULT 0;
CREATE INDEX scopes_ended ON scopes (tenant, agent, ended_from);

-- Number of visible tasks of an agent.
CREATE TABLE agent_counts (
    tenant   TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    open     INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;
INSERT INTO agent_counts (tenant, agent, open, finished)
SELECT tenant, agent, sum(iif(state IN (3, 4, 5, 7), 0, n)), sum(iif(state IN (3, 4, 5, 7), n, 0))
FROM counts JOIN scopes ON scopes.id = counts.scope GROUP BY tenant, agent;

-- Finds whether a scope has purged tasks: one without any tasks is deleted.
CREATE INDEX tasks_purged_scope ON tasks (scope) WHERE visible = 3;
-- Tasks that wait for their client, longest first.
CREATE INDEX tasks_waiting ON tasks (status_at) WHERE visible = 1 AND state IN (6, 8);

-- Totals of long lists are no longer kept.
DROP TABLE tallies;
DROP TABLE tallied;
