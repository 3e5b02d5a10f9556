-- The smallest task number of a run of idempotency keys, so that a run whose tasks are all deleted is found. Unknown for
-- older runs.
ALTER TABLE key_runs ADD COLUMN min_n INTEGER NOT NULL DEFAULT 0;
