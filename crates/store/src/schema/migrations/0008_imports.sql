-- Imports that have begun and not ended. Their rows in the log have the id of a session
-- without a row of its own, so no read sees them.
CREATE TABLE cf_agents_imports (
  session_id TEXT PRIMARY KEY NOT NULL,
  token      TEXT NOT NULL,     -- of the request that writes; a later one's takes its place
  touched_at INTEGER NOT NULL   -- ms since the epoch; long ago: that request is dead
) WITHOUT ROWID;
