-- A summary of a range of a path: a reader gets it in the place of the events, which stay
-- as they are. A walk up the path finds an overlay at the newest event that it covers. Of
-- overlays that end at the same event, the widest comes first.
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

-- The outcomes of the session's last attempts to compact: JSON, see
-- compaction/journal.rs.
ALTER TABLE cf_agents_sessions ADD COLUMN compaction TEXT;
