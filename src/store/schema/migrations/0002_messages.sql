-- A message of the AI SDK as it was sent: the inside of its JSON object, less
-- the `id` and the `createdAt`, which are columns. NULL for an event that came
-- as an event; its message is made from its other columns when it is read.
ALTER TABLE cf_agents_events ADD COLUMN message TEXT;

-- 1: the message brought a `createdAt` that is no time of ours, and keeps it inside.
ALTER TABLE cf_agents_events ADD COLUMN message_dated INTEGER NOT NULL DEFAULT 0;

-- What happened to a session beside its appends, which the log tells itself.
-- The cursor is the newest seq at that time, times 2^20, plus a running number:
-- so it falls between that append and the next without a counter of its own.
CREATE TABLE cf_agents_changes (
  session_id TEXT NOT NULL,
  cursor     INTEGER NOT NULL,
  type       TEXT NOT NULL,     -- update, delete, clear, compaction
  id         TEXT,              -- of the event or the overlay; NULL for clear
  changed_at INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (session_id, cursor)
) WITHOUT ROWID;
