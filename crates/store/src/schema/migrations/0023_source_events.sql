-- The answer in which a model wrote the text: the id of the answer's first event. NULL: an
-- operation wrote the text, or an older build.
ALTER TABLE cf_agents_block_versions ADD COLUMN event_id TEXT;
