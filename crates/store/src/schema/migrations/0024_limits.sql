-- What counts against `limits`, of the agent and of minted tokens: store/meter.rs. Without
-- limits there is no row. A day has a row per holder; rows older than the day before are
-- deleted when another one is written.
CREATE TABLE cf_agents_metered (
  day    INTEGER NOT NULL,  -- days since the epoch, UTC
  holder TEXT NOT NULL,     -- empty: the agent; else who holds the token
  tokens INTEGER NOT NULL,
  cost   REAL NOT NULL,
  starts TEXT NOT NULL,     -- JSON: when the turns of the last minute began, in ms
  PRIMARY KEY (day, holder)
) WITHOUT ROWID;
