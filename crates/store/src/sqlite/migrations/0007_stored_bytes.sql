-- Bytes of the logs of a scope's tasks, without purged ones.
ALTER TABLE scopes ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
UPDATE scopes SET stored = sums.bytes
FROM (SELECT scope, sum(size) AS bytes FROM tasks WHERE visible < 3 GROUP BY scope) AS sums
WHERE sums.scope = scopes.id;
