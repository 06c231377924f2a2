CREATE TABLE IF NOT EXISTS cf_agents_directory (
  name       TEXT PRIMARY KEY NOT NULL,
  life       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  gone_at    INTEGER
) STRICT, WITHOUT ROWID;
