-- Turns that failed, so that a failure that said nothing leaves a record, and so that
-- failures are found without a look at the log. A turn that did not fail has no row: its
-- record is in the event that ended it. A failure costs one row: a session has a few places
-- (`slot`), and a newer failure is written over the oldest.
CREATE TABLE cf_agents_failed_turns (
  session_id TEXT NOT NULL,
  slot       INTEGER NOT NULL,
  seq        INTEGER NOT NULL,  -- of the event that ended the turn, or that it would have had
  ended_at   INTEGER NOT NULL,
  has_answer INTEGER NOT NULL,  -- 1: the event at `seq` has the record, too
  record     TEXT NOT NULL,     -- JSON, see chat/record/mod.rs
  PRIMARY KEY (session_id, slot)
) WITHOUT ROWID;
