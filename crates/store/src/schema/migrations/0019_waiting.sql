-- Messages that wait for the end of their session's turn, in the order in which they are
-- answered. A message that replaces a turn has a number below 1 and goes first. A long
-- request has several parts; a message that need not wait has no row here.
CREATE TABLE cf_agents_waiting (
  session_id  TEXT NOT NULL,
  number      INTEGER NOT NULL,
  part        INTEGER NOT NULL,  -- from 1
  turn_id     TEXT NOT NULL,     -- of the turn that will answer the message
  message_ids TEXT NOT NULL,     -- of part 1: JSON, the ids of the request's messages
  text        TEXT NOT NULL,     -- JSON, see chat/waiting.rs
  PRIMARY KEY (session_id, number, part)
) WITHOUT ROWID;
