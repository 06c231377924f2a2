-- A message of the AI SDK as it was sent: the inside of its JSON object without `id` and
-- `createdAt`, which are columns. NULL for an event that came as an event: reads make its
-- message from the other columns.
ALTER TABLE cf_agents_events ADD COLUMN message TEXT;

-- 1: the message came with a `createdAt` that isn't a time in our format, and keeps it
-- inside.
ALTER TABLE cf_agents_events ADD COLUMN message_dated INTEGER NOT NULL DEFAULT 0;

-- The changes of a session that its log doesn't tell. An entry's cursor is the newest seq
-- at that time, times 2^20, plus a running number: a cursor lies between that append and
-- the next, and needs no counter of its own.
CREATE TABLE cf_agents_changes (
  session_id TEXT NOT NULL,
  cursor     INTEGER NOT NULL,
  type       TEXT NOT NULL,     -- update, delete, clear, compaction
  id         TEXT,              -- of the event or the overlay; NULL for clear
  changed_at INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (session_id, cursor)
) WITHOUT ROWID;
