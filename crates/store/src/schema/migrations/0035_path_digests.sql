-- The places in sessions that a request in a provider's API may continue: the digest of a path's
-- messages leads to the event that the path ends with (store/path_digests.rs).
CREATE TABLE cf_agents_path_digests (
  digest     TEXT NOT NULL,
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  is_answer  INTEGER NOT NULL,
  PRIMARY KEY (digest, session_id)
) WITHOUT ROWID;

-- Without it, to delete a session would read the rows of all sessions.
CREATE INDEX cf_agents_path_digests_by_session
  ON cf_agents_path_digests (session_id);
