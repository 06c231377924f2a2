-- Answers to a turn's calls that came while the turn still ran: a client runs its tools
-- as soon as it gets their calls. They are taken and deleted when the turn is over. A
-- long answer has several parts; a turn without client tools has no row here.
CREATE TABLE cf_agents_early_answers (
  session_id   TEXT NOT NULL,
  number       INTEGER NOT NULL,  -- in the order of their coming
  part         INTEGER NOT NULL,  -- from 1
  tool_call_id TEXT NOT NULL,
  text         TEXT NOT NULL,     -- JSON, see chat/early.rs
  PRIMARY KEY (session_id, number, part)
) WITHOUT ROWID;
