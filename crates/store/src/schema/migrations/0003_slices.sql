-- The bytes of this event that are kept in slices, because a row holds at most 2 MB.
ALTER TABLE cf_agents_events ADD COLUMN sliced_bytes INTEGER NOT NULL DEFAULT 0;

-- A text too long for its row, in slices that are cut between characters.
CREATE TABLE cf_agents_slices (
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  field      TEXT NOT NULL,     -- the event's column: content, tool, metadata, message
  part       INTEGER NOT NULL,  -- from 0
  text       TEXT NOT NULL,
  PRIMARY KEY (session_id, seq, field, part)
) WITHOUT ROWID;
