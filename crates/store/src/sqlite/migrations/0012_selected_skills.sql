-- Who has selected the skill of a task: 0 the server, 1 the client. NULL in rows of earlier versions, which recorded only
-- skills that the client had named.
ALTER TABLE tasks ADD COLUMN skill_source INTEGER;
-- 1: the message of the current turn has passed the checks of the skill.
ALTER TABLE tasks ADD COLUMN admitted INTEGER NOT NULL DEFAULT 0;

-- The skill whose work has recorded the checkpoint; empty if the task had none. NULL in rows of earlier versions, which put
-- ids of skills before the state.
ALTER TABLE saved ADD COLUMN skill TEXT;
