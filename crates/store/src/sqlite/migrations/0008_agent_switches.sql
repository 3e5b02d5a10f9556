-- Operators' decisions whether an agent is enabled. Each overrides the configuration until the next one.
CREATE TABLE agent_switches (
    tenant     TEXT    NOT NULL CHECK (length(tenant) BETWEEN 1 AND 64),
    agent      TEXT    NOT NULL CHECK (length(agent) BETWEEN 1 AND 64),
    enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    decided_at INTEGER NOT NULL,
    decided_by TEXT    NOT NULL CHECK (length(decided_by) BETWEEN 1 AND 128),
    PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;
