-- Tasks that crashed two processes are queried in every polling round, and there are hardly ever any.
CREATE INDEX IF NOT EXISTS tasks_suspects ON tasks (next_run_at, n) WHERE next_run_at IS NOT NULL AND deaths >= 2;

-- Finds a repeated message by its key where the request names only the context.
CREATE INDEX IF NOT EXISTS turn_keys_by_key ON turn_keys (key);
CREATE INDEX IF NOT EXISTS tasks_named_key ON tasks (key) WHERE key IS NOT NULL AND client_id IS NOT NULL;
