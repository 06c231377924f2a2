-- What the message view shows of an event of a chat turn beside its columns: JSON, see
-- log/note.rs. NULL for every other event.
ALTER TABLE cf_agents_events ADD COLUMN note TEXT;

-- The turn that runs in a session: all that the object's next life needs to finish the
-- turn. The row is deleted with the turn's end.
CREATE TABLE cf_agents_turns (
  session_id TEXT PRIMARY KEY NOT NULL,
  state      TEXT NOT NULL,  -- JSON, see chat/turn.rs
  recoveries INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Tools that this agent's models may call beside the built-in ones.
CREATE TABLE cf_agents_tools (
  name           TEXT PRIMARY KEY NOT NULL,
  description    TEXT NOT NULL,
  parameters     TEXT NOT NULL,     -- JSON Schema
  service        TEXT,              -- a service binding, or …
  url            TEXT,              -- … an address
  needs_approval INTEGER NOT NULL DEFAULT 0,
  defined_at     INTEGER NOT NULL   -- ms since the epoch
) WITHOUT ROWID;
