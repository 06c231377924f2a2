-- Answers to calls of a turn that came while the turn still ran: a client runs
-- its tools as soon as it hears of their calls. Taken once the turn is over, and
-- gone with that. A long one is in parts; a plain turn has none.
CREATE TABLE cf_agents_early_answers (
  session_id   TEXT NOT NULL,
  number       INTEGER NOT NULL,  -- in the order of their coming
  part         INTEGER NOT NULL,  -- from 1
  tool_call_id TEXT NOT NULL,
  text         TEXT NOT NULL,     -- JSON, see chat/early.rs
  PRIMARY KEY (session_id, number, part)
) WITHOUT ROWID;
