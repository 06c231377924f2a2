-- How many messages and estimated tokens the path to an event has (log/totals.rs). NULL: an event
-- of an earlier build. The other two columns correct them from this event on, after a change of the
-- event or of what it follows. Only such events are in the index.
ALTER TABLE cf_agents_events ADD COLUMN path_messages INTEGER;
ALTER TABLE cf_agents_events ADD COLUMN path_tokens INTEGER;
ALTER TABLE cf_agents_events ADD COLUMN more_messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cf_agents_events ADD COLUMN more_tokens INTEGER NOT NULL DEFAULT 0;

CREATE INDEX cf_agents_events_by_correction
  ON cf_agents_events (session_id, seq, more_messages, more_tokens)
  WHERE more_messages <> 0 OR more_tokens <> 0;
