-- What a tool's definition says of its calls: the headers as JSON, with a secret by its
-- name, and the limits of time and size. NULL: no headers, the limits of every tool.
ALTER TABLE cf_agents_tools ADD COLUMN headers TEXT;
ALTER TABLE cf_agents_tools ADD COLUMN timeout_ms INTEGER;
ALTER TABLE cf_agents_tools ADD COLUMN max_output_bytes INTEGER;
