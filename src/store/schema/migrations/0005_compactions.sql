-- A summary over a range of a path: what a reader is shown in its place. The
-- events themselves stay as they are. Found from the newest event it covers,
-- where a walk up the path meets it; the widest of those that end there first.
CREATE TABLE cf_agents_compactions (
  session_id    TEXT NOT NULL,
  to_seq        INTEGER NOT NULL,  -- the newest event it covers
  from_seq      INTEGER NOT NULL,  -- the oldest
  number        INTEGER NOT NULL,  -- in the order of writing; of two with the same range the newer holds
  id            TEXT NOT NULL,
  above_seq     INTEGER NOT NULL,  -- the event that the oldest follows; 0: none
  from_id       TEXT NOT NULL,
  to_id         TEXT NOT NULL,
  summary       TEXT NOT NULL,
  tokens_before INTEGER,           -- of the whole path, estimated; NULL where a caller wrote the summary
  tokens_after  INTEGER,
  created_at    INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (session_id, to_seq, from_seq, number)
) WITHOUT ROWID;

-- How the session's last attempts to compact went: JSON, see compaction/journal.rs.
ALTER TABLE cf_agents_sessions ADD COLUMN compaction TEXT;
