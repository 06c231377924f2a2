-- Events keep who caused them from now on. Those that are here already don't say it, so what is
-- still to be learnt from them is nobody's word. The newest of them was written at this time.
INSERT INTO cf_agents_config (key, value)
SELECT 'unknownUntil', CAST(newest AS TEXT)
  FROM (SELECT max((SELECT written_at
                      FROM cf_agents_events AS e
                     WHERE e.session_id = s.id
                     ORDER BY e.seq DESC
                     LIMIT 1)) AS newest
          FROM cf_agents_sessions AS s)
 WHERE newest IS NOT NULL;
