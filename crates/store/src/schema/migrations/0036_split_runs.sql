-- 1: this event begins a message although its run continues here, because a branch or a summary
-- splits the run (log/boundary.rs).
ALTER TABLE cf_agents_events ADD COLUMN splits_run INTEGER NOT NULL DEFAULT 0;

-- Only below an event with several children and at the ends of a summary can a run be split. So
-- this reads the index of branches and the summaries, and no other part of the log.
UPDATE cf_agents_events AS e
   SET splits_run = 1
  FROM (SELECT session_id, seq
          FROM cf_agents_events INDEXED BY cf_agents_events_by_parent
         WHERE is_branch = 1
         UNION
        SELECT b.session_id, (SELECT min(n.seq)
                                FROM cf_agents_events AS n
                               WHERE n.session_id = b.session_id
                                 AND n.seq > b.parent_seq)
          FROM cf_agents_events AS b INDEXED BY cf_agents_events_by_parent
         WHERE b.is_branch = 1
         UNION
        SELECT session_id, from_seq
          FROM cf_agents_compactions
         UNION
        SELECT c.session_id, (SELECT min(n.seq)
                                FROM cf_agents_events AS n
                               WHERE n.session_id = c.session_id
                                 AND n.seq > c.to_seq)
          FROM cf_agents_compactions AS c) AS found
 WHERE e.session_id = found.session_id
   AND e.seq = found.seq
   AND e.message IS NULL
   AND e.action IN ('agent_message', 'tool_call_request', 'tool_result')
   AND EXISTS (SELECT 1
                 FROM cf_agents_events AS parent
                WHERE parent.session_id = e.session_id
                  AND parent.seq = e.parent_seq
                  AND parent.message IS NULL
                  AND parent.action IN ('agent_message', 'tool_call_request', 'tool_result'))
   AND (EXISTS (SELECT 1
                  FROM cf_agents_events AS other INDEXED BY cf_agents_events_by_parent
                 WHERE other.session_id = e.session_id
                   AND other.parent_seq = e.parent_seq
                   AND other.is_branch = 1
                   AND other.seq <> e.seq
                   AND (e.action <> 'tool_result'
                        OR (other.message IS NULL
                            AND other.action IN ('agent_message', 'tool_call_request', 'tool_result'))))
        OR EXISTS (SELECT 1
                     FROM cf_agents_events AS other
                    WHERE other.session_id = e.session_id
                      AND other.seq = (SELECT min(seq)
                                         FROM cf_agents_events
                                        WHERE session_id = e.session_id
                                          AND seq > e.parent_seq)
                      AND other.parent_seq = e.parent_seq
                      AND other.is_branch = 0
                      AND other.seq <> e.seq
                      AND (e.action <> 'tool_result'
                           OR (other.message IS NULL
                               AND other.action IN ('agent_message', 'tool_call_request', 'tool_result'))))
        OR EXISTS (SELECT 1
                     FROM cf_agents_compactions AS cut
                    WHERE cut.session_id = e.session_id
                      AND cut.to_seq >= e.parent_seq
                      AND (cut.to_seq = e.parent_seq OR cut.from_seq = e.seq)));
