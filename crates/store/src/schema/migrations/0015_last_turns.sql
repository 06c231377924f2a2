-- What the turn that ended with this event has spent: JSON, see store/last_turns.rs.
-- NULL for every other event. No copy of an event has it.
ALTER TABLE cf_agents_events ADD COLUMN ends_turn TEXT;

-- The last turn of each session: written when the turn begins, written over by the
-- next. The turn is over once the event with the `answer_seq` has its `ends_turn`,
-- or once there is no `state`.
CREATE TABLE cf_agents_last_turns (
  session_id    TEXT PRIMARY KEY NOT NULL,
  turn_id       TEXT,                        -- NULL: the turn was stored in a form that can't be read
  recoveries    INTEGER NOT NULL DEFAULT 0,
  answer_seq    INTEGER,                     -- the seq that the answer gets, unless somebody else appends first
  input_tokens  INTEGER NOT NULL DEFAULT 0,  -- of turns before this one, and not in the session's row
  output_tokens INTEGER NOT NULL DEFAULT 0,
  calibration   TEXT,                        -- JSON, see store/calibration.rs; NULL: as the agent's
  state         TEXT                         -- JSON, see chat/turn.rs
) WITHOUT ROWID;

-- Turns that run now end by writing so into their row: they have no `answer_seq`.
INSERT INTO cf_agents_last_turns (session_id, turn_id, recoveries, state)
SELECT session_id, iif(json_valid(state), state ->> '$.id', NULL), recoveries, state
  FROM cf_agents_turns;

DROP TABLE cf_agents_turns;
