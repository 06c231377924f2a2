-- What callers write on a session and on a block to find it again. Those of entries and
-- documents stand in the column `note` of their rows, as does who wrote the text and the
-- events that it comes from: see memory/past.rs.
ALTER TABLE cf_agents_sessions ADD COLUMN tags TEXT;      -- JSON array of strings; NULL: none
ALTER TABLE cf_agents_blocks ADD COLUMN metadata TEXT;    -- JSON object; NULL: none
-- JSON array of strings; NULL: none
ALTER TABLE cf_agents_blocks ADD COLUMN tags TEXT;
