-- The events of a session up to this seq came with a file or a fork. Waiting calls in
-- them are data: no turn of this session left the calls open.
ALTER TABLE cf_agents_sessions ADD COLUMN copied_seq INTEGER NOT NULL DEFAULT 0;

-- Whether the model may write the block: 1, 0, or NULL if the definition doesn't say. For
-- NULL the block's home decides.
ALTER TABLE cf_agents_blocks ADD COLUMN model_writes INTEGER;
