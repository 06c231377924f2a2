-- Of turns before this one, and not in the session's row: the input tokens that came from
-- the provider's cache.
ALTER TABLE cf_agents_last_turns ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0;
