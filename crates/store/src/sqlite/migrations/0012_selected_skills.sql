-- Who has selected the skill of a task: 0 the server, 1 the client. NULL in rows of earlier versions, which recorded only
-- skills that the client had named.
ALTER TABLE tasks ADD COLUMN skill_source INTEGER;

-- The skill whose work has recorded the checkpoint; empty if the task had none. NULL in rows of earlier versions, which put
-- ids of skills before the state.
ALTER TABLE saved ADD COLUMN skill TEXT;
