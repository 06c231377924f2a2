-- Where this session's cursors begin: above every cursor that a deleted session of this
-- agent ever gave, so no old cursor fits.
ALTER TABLE cf_agents_sessions ADD COLUMN feed_base INTEGER NOT NULL DEFAULT 0;

-- The entry's own number: every thousandth entry looks for older entries that a newer one
-- makes superfluous.
ALTER TABLE cf_agents_changes ADD COLUMN number INTEGER NOT NULL DEFAULT 0;

-- The input tokens that the provider read from its cache.
ALTER TABLE cf_agents_sessions ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0;

-- How many calls were counted under an id of their own.
ALTER TABLE cf_agents_sessions ADD COLUMN usage_calls INTEGER NOT NULL DEFAULT 0;

-- The ids of the newest of these calls: a call that is sent again counts once. An export
-- leaves them out, because they guard against a retry and not against a copy.
CREATE TABLE cf_agents_usage_calls (
  session_id TEXT NOT NULL,
  id         TEXT NOT NULL,
  number     INTEGER NOT NULL,  -- in the order of counting
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
