-- What turns cost that were before this one, and are not in the session's row.
ALTER TABLE cf_agents_last_turns ADD COLUMN cost REAL NOT NULL DEFAULT 0;

-- What these turns spent by day and model: JSON, see store/usage_days.rs.
ALTER TABLE cf_agents_last_turns ADD COLUMN usage_days TEXT;

-- The same of everything that the session spent earlier.
ALTER TABLE cf_agents_sessions ADD COLUMN usage_days TEXT;

-- The same of all sessions together, except for what rows of last turns still hold.
CREATE TABLE cf_agents_usage_days (
  day                 INTEGER NOT NULL,  -- days since the epoch, UTC
  model               TEXT NOT NULL,     -- empty: not known
  turns               INTEGER NOT NULL,
  input_tokens        INTEGER NOT NULL,
  output_tokens       INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cost                REAL NOT NULL,
  PRIMARY KEY (day, model)
) WITHOUT ROWID;
