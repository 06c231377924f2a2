-- The configuration holds what the agent was told, and nothing else: defaults that are
-- deployed later reach an agent only where it has no value of its own. Until now all
-- fields were stored as soon as one was set. A value that was the default counts as
-- never told, which it nearly always was.
UPDATE cf_agents_config
   SET value = json_remove(
         value,
         iif(value ->> '$.model' IS NULL, '$.model', '$.none'),
         iif(value -> '$.systemInstructions' = '[]', '$.systemInstructions', '$.none'),
         iif(value ->> '$.maxSteps' = 10, '$.maxSteps', '$.none'),
         iif(value -> '$.sessionSearch' = 'false', '$.sessionSearch', '$.none'),
         iif(value -> '$.vectors' = 'false', '$.vectors', '$.none'),
         iif(value -> '$.reservedMetadataKeys' = '[]', '$.reservedMetadataKeys', '$.none')
       )
 WHERE key = 'agent'
   AND json_valid(value);
