-- The configuration of one agent: small values, each written as a whole.
CREATE TABLE cf_agents_config (
  key   TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL               -- JSON
) WITHOUT ROWID;

-- One row per conversation. An append does not write this row: the newest event and the
-- time of the last activity are read from the log.
CREATE TABLE cf_agents_sessions (
  number            INTEGER PRIMARY KEY,         -- this session in places that have no room for its id
  id                TEXT NOT NULL UNIQUE,
  agent_id          TEXT NOT NULL,
  name              TEXT,
  parent_session_id TEXT,
  metadata          TEXT,                        -- JSON object
  created_at        INTEGER NOT NULL,            -- ms since the epoch
  updated_at        INTEGER NOT NULL,            -- the last write that was not an append
  seq_floor         INTEGER NOT NULL DEFAULT 0,  -- no new event gets this seq or a lower one
  leaf_seq          INTEGER,                     -- the chosen branch's end …
  leaf_chosen_at    INTEGER,                     -- … while no event above this seq exists
  input_tokens      INTEGER NOT NULL DEFAULT 0,
  output_tokens     INTEGER NOT NULL DEFAULT 0,
  cost              REAL NOT NULL DEFAULT 0
);

-- One row per event: a node of its session's tree, in the order of writing. The primary
-- key is the table itself. So an append writes one row at any length, if the event's id
-- leads to its row and the event follows the newest one.
CREATE TABLE cf_agents_events (
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,            -- from 1, never reused
  id         TEXT NOT NULL,
  id_indexed INTEGER NOT NULL DEFAULT 0,  -- 1: the id doesn't lead to this row by itself
  parent_seq INTEGER NOT NULL DEFAULT 0,  -- 0: a root. Always below seq
  parent_id  TEXT,
  is_branch  INTEGER NOT NULL DEFAULT 0,  -- 0: the parent is the row right before this one
  action     TEXT NOT NULL,
  content    TEXT,
  tool       TEXT,                        -- JSON object: toolCalls, toolCallId, toolName, isError
  metadata   TEXT,                        -- JSON object
  created_at INTEGER NOT NULL,            -- ms since the epoch, the caller's if given
  written_at INTEGER NOT NULL,            -- ms since the epoch, ours
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- Finds an event by an id that a caller gave. Such an event costs one more written row;
-- an event with a minted id costs none.
CREATE UNIQUE INDEX cf_agents_events_by_id
  ON cf_agents_events (session_id, id)
  WHERE id_indexed = 1;

-- Finds the children of an event, but for the row right after it. An event that starts a
-- branch costs one more written row; any other costs none.
CREATE INDEX cf_agents_events_by_parent
  ON cf_agents_events (session_id, parent_seq)
  WHERE is_branch = 1;
