-- What callers write on a session and on a block to find it again. Those of entries and
-- documents stand in the column `note` of their rows, as does who wrote the text and the
-- events that it comes from: see memory/past.rs.
-- `tags`: a JSON array of strings; NULL: none. `metadata`: a JSON object; NULL: none.
-- No comment stands behind the last statement: a Durable Object refuses it as a statement that
-- is none.
ALTER TABLE cf_agents_sessions ADD COLUMN tags TEXT;
ALTER TABLE cf_agents_blocks ADD COLUMN metadata TEXT;
ALTER TABLE cf_agents_blocks ADD COLUMN tags TEXT;
