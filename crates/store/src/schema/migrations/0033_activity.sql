-- The order of sessions by their last activity. Of the sessions up to the place that
-- `cf_agents_config` names under `activity`, this column says when they were last written to.
-- Later sessions are the window: few, and the newest of all. They may have been written to since,
-- as their newest events and changes say, so an append to one of them writes nothing here
-- (store/activity.rs).
ALTER TABLE cf_agents_sessions ADD COLUMN settled_at INTEGER NOT NULL DEFAULT 0;

UPDATE cf_agents_sessions AS s
   SET settled_at = max(s.updated_at,
                        coalesce((SELECT c.changed_at
                                    FROM cf_agents_changes AS c
                                   WHERE c.session_id = s.id
                                   ORDER BY c.cursor DESC
                                   LIMIT 1), 0),
                        coalesce((SELECT e.written_at
                                    FROM cf_agents_events AS e
                                   WHERE e.session_id = s.id
                                   ORDER BY e.seq DESC
                                   LIMIT 1), 0));

CREATE INDEX cf_agents_sessions_by_activity
  ON cf_agents_sessions (settled_at);

INSERT INTO cf_agents_config (key, value)
SELECT 'activity', json_array(settled_at, number)
  FROM cf_agents_sessions
 ORDER BY settled_at DESC, number DESC
 LIMIT 1 OFFSET 64;
