-- Imports that have begun and not ended. What they have written stands in the
-- log under the id of a session that has no row yet, so that no read sees it.
CREATE TABLE cf_agents_imports (
  session_id TEXT PRIMARY KEY NOT NULL,
  token      TEXT NOT NULL,     -- of the request that writes; a later one's takes its place
  touched_at INTEGER NOT NULL   -- ms since the epoch; long ago: that request is dead
) WITHOUT ROWID;
