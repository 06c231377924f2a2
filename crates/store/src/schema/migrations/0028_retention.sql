-- How long this session's texts are kept: JSON, see store/retention.rs. NULL: as the
-- agent's configuration says.
ALTER TABLE cf_agents_sessions ADD COLUMN retention TEXT;

-- 1: retention deletes nothing of this session.
ALTER TABLE cf_agents_sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;

-- How long what a block held is kept: JSON, as above.
ALTER TABLE cf_agents_blocks ADD COLUMN retention TEXT;

-- Finds the sessions that have a retention of their own, or a block that has. Only such
-- sessions pay a row for this index.
CREATE INDEX cf_agents_sessions_by_retention
    ON cf_agents_sessions (number)
 WHERE retention IS NOT NULL;
