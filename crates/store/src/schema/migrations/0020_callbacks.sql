-- Calls that tell a service of a turn's end (`onTurnEnd`). A row is written in the turn's
-- last transaction and deleted when the service has answered. A call that failed too often
-- stays, with `failed_at`; an agent keeps a few of them. Without the setting there is no row.
CREATE TABLE cf_agents_callbacks (
  number     INTEGER PRIMARY KEY,  -- in the order of the turns' ends
  id         TEXT NOT NULL,        -- the delivery's id, the same at every try
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,        -- of the answer; the log may hold none
  report     TEXT NOT NULL,        -- JSON, see chat/report.rs
  attempts   INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER NOT NULL,     -- of the next try
  reason     TEXT,                 -- why the last try failed
  failed_at  INTEGER
);
