-- A server of tools is a row beside the tools: what the server said, as JSON (how it is
-- spoken to, its tools, the definitions that were accepted), and when it was last asked
-- for its list, in ms since the epoch. NULL: the row is a tool.
ALTER TABLE cf_agents_tools ADD COLUMN server TEXT;
ALTER TABLE cf_agents_tools ADD COLUMN asked_at INTEGER;
