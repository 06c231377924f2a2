-- Up to which event the agent has learnt from this session. A look and what came of it
-- move the mark in one transaction, so each event is looked at once.
ALTER TABLE cf_agents_sessions ADD COLUMN learned_seq INTEGER NOT NULL DEFAULT 0;

-- When the session is looked at next, in ms since the epoch. NULL: nothing new was said.
ALTER TABLE cf_agents_sessions ADD COLUMN learn_due_at INTEGER;

-- How the looks at this session fail: JSON, see learning/marks.rs. NULL: the last one did not.
ALTER TABLE cf_agents_sessions ADD COLUMN learn_failure TEXT;

-- Finds the session that is looked at next. Only sessions that wait pay a row for it.
CREATE INDEX cf_agents_sessions_by_learn_due
    ON cf_agents_sessions (learn_due_at)
 WHERE learn_due_at IS NOT NULL;

-- Changes of memory that a model proposed, and what became of them.
CREATE TABLE cf_agents_proposals (
  number     INTEGER PRIMARY KEY,       -- its id: when it was made, or one more than the last one's
  session_id TEXT NOT NULL,             -- where it was learnt; '': from memory itself
  kind       TEXT NOT NULL,             -- learn, consolidate
  status     TEXT NOT NULL,             -- pending, applied, rejected, reverted
  label      TEXT NOT NULL,             -- the block
  note       TEXT NOT NULL,             -- JSON: see memory/proposals/mod.rs
  changes    TEXT NOT NULL              -- JSON array: the same
);
