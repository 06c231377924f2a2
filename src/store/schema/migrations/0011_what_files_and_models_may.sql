-- Events of a session up to this seq came with a file or a fork. What they say of
-- calls that wait for the user or the client is data: no turn of this session left
-- them open.
ALTER TABLE cf_agents_sessions ADD COLUMN copied_seq INTEGER NOT NULL DEFAULT 0;

-- Whether the model may write the block: 1, 0, or NULL, where its definition
-- doesn't say and its home decides.
ALTER TABLE cf_agents_blocks ADD COLUMN model_writes INTEGER;
