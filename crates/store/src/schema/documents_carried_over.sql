-- Copies the rows of the documents' original tables into ours, and loses nothing.

INSERT INTO cf_agents_sessions (id, agent_id, metadata, created_at, updated_at)
SELECT id, agent_id, metadata, created_at, updated_at
  FROM cf_agents_documents_sessions
 ORDER BY created_at, id;

-- Events without a session's row get the row back: the old layout had no foreign key that
-- kept it.
INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at)
SELECT session_id,
       coalesce((SELECT min(agent_id) FROM cf_agents_documents_sessions), ''),
       min(created_at),
       max(created_at)
  FROM cf_agents_documents_events
 WHERE session_id NOT IN (SELECT id FROM cf_agents_documents_sessions)
 GROUP BY session_id;

-- The old log was a line: each event's parent is the event before it. A session whose
-- numbers our key can't hold (a double, a zero, a fraction, more than 32 bits) gets new
-- numbers in the same order. Every other session keeps its numbers. The old layout kept a
-- tool's fields in the metadata. Fields of the right shape become the event's own; others
-- stay in the metadata. Metadata that isn't JSON is kept as it is, so that a reader is
-- told.
INSERT INTO cf_agents_events
       (session_id, seq, id, id_indexed, parent_seq, parent_id,
        action, content, tool, metadata, created_at, written_at)
WITH numbered AS (
  SELECT session_id, id, action, content, metadata, created_at,
         CASE WHEN session_id IN (
                SELECT session_id
                  FROM cf_agents_documents_events
                 GROUP BY session_id
                HAVING count(*) <> count(DISTINCT seq)
                    OR min(seq) < 1
                    OR max(seq) > 4294967295
                    OR sum(typeof(seq) <> 'integer') > 0)
              THEN row_number() OVER (PARTITION BY session_id ORDER BY seq, rowid)
              ELSE seq
         END AS seq,
         CASE WHEN NOT json_valid(metadata) THEN ''
              WHEN action = 'tool_call_request'
                   AND json_type(metadata, '$.toolCalls') = 'array' THEN 'calls'
              WHEN action = 'tool_result'
                   AND json_type(metadata, '$.toolCallId') = 'text'
                   AND coalesce(json_type(metadata, '$.toolName'), 'text') = 'text'
                   AND coalesce(json_type(metadata, '$.isError'), 'true') IN ('true', 'false') THEN 'result'
              ELSE ''
         END AS carries
    FROM cf_agents_documents_events
), split AS (
  SELECT session_id, seq, id, action, content, created_at,
         CASE carries
           WHEN 'calls' THEN json_object('toolCalls', metadata -> '$.toolCalls')
           WHEN 'result' THEN json_patch('{}', json_object(
             'toolCallId', metadata -> '$.toolCallId',
             'toolName', metadata -> '$.toolName',
             'isError', metadata -> '$.isError'))
         END AS tool,
         CASE carries
           WHEN 'calls' THEN json_remove(metadata, '$.toolCalls')
           WHEN 'result' THEN json_remove(metadata, '$.toolCallId', '$.toolName', '$.isError')
           ELSE metadata
         END AS metadata
    FROM numbered
)
SELECT session_id, seq, id, 1,
       coalesce(lag(seq) OVER line, 0),
       lag(id) OVER line,
       action, content, tool, nullif(metadata, '{}'), created_at, created_at
  FROM split
WINDOW line AS (PARTITION BY session_id ORDER BY seq);

DROP TABLE cf_agents_documents_events;
DROP TABLE cf_agents_documents_sessions;
