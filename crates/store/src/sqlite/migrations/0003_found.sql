-- Work that took two processes down is looked for in every round, and there is hardly ever any.
CREATE INDEX IF NOT EXISTS tasks_suspects ON tasks (next_run_at, n) WHERE next_run_at IS NOT NULL AND deaths >= 2;

-- Where only its conversation is named, a message that was said before is found by its key.
CREATE INDEX IF NOT EXISTS turn_keys_by_key ON turn_keys (key);
CREATE INDEX IF NOT EXISTS tasks_named_key ON tasks (key) WHERE key IS NOT NULL AND client_id IS NOT NULL;
