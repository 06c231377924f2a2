-- Moves the documents' original tables aside, so that ours can have their names.
CREATE TABLE IF NOT EXISTS cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  metadata TEXT
);
CREATE TABLE IF NOT EXISTS cf_agents_events (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  action TEXT NOT NULL,
  content TEXT,
  metadata TEXT,
  created_at INTEGER NOT NULL
);
ALTER TABLE cf_agents_sessions RENAME TO cf_agents_documents_sessions;
ALTER TABLE cf_agents_events RENAME TO cf_agents_documents_events;
