-- Where this session's cursors begin: above all that a session of this agent
-- that was deleted ever gave, so that no cursor of an earlier life fits.
ALTER TABLE cf_agents_sessions ADD COLUMN feed_base INTEGER NOT NULL DEFAULT 0;

-- The entry's own number, so that one in a thousand looks for older entries
-- that say no more than a newer one.
ALTER TABLE cf_agents_changes ADD COLUMN number INTEGER NOT NULL DEFAULT 0;

-- Of the input tokens, those that the provider had in its cache.
ALTER TABLE cf_agents_sessions ADD COLUMN cached_input_tokens INTEGER NOT NULL DEFAULT 0;

-- Calls that were counted under an id of their own so far.
ALTER TABLE cf_agents_sessions ADD COLUMN usage_calls INTEGER NOT NULL DEFAULT 0;

-- The ids of the newest such calls, so that one that is sent again counts once.
-- Not part of an export: they guard against a retry, not against a copy.
CREATE TABLE cf_agents_usage_calls (
  session_id TEXT NOT NULL,
  id         TEXT NOT NULL,
  number     INTEGER NOT NULL,  -- in the order of counting
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;
