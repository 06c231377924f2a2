CREATE TABLE cf_agents_migrations (
      number     INTEGER PRIMARY KEY NOT NULL,
      name       TEXT NOT NULL,
      applied_at INTEGER NOT NULL
    );

CREATE TABLE cf_agents_config (
  key   TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE cf_agents_sessions (
  number            INTEGER PRIMARY KEY,
  id                TEXT NOT NULL UNIQUE,
  agent_id          TEXT NOT NULL,
  name              TEXT,
  parent_session_id TEXT,
  metadata          TEXT,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL,
  seq_floor         INTEGER NOT NULL DEFAULT 0,
  leaf_seq          INTEGER,
  leaf_chosen_at    INTEGER,
  input_tokens      INTEGER NOT NULL DEFAULT 0,
  output_tokens     INTEGER NOT NULL DEFAULT 0,
  cost              REAL NOT NULL DEFAULT 0
, compaction TEXT, copied_seq INTEGER NOT NULL DEFAULT 0, feed_base INTEGER NOT NULL DEFAULT 0, cached_input_tokens INTEGER NOT NULL DEFAULT 0, usage_calls INTEGER NOT NULL DEFAULT 0, usage_days TEXT, retention TEXT, pinned INTEGER NOT NULL DEFAULT 0, tags TEXT, learned_seq INTEGER NOT NULL DEFAULT 0, learn_due_at INTEGER, learn_failure TEXT, settled_at INTEGER NOT NULL DEFAULT 0);

CREATE TABLE cf_agents_events (
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  id         TEXT NOT NULL,
  id_indexed INTEGER NOT NULL DEFAULT 0,
  parent_seq INTEGER NOT NULL DEFAULT 0,
  parent_id  TEXT,
  is_branch  INTEGER NOT NULL DEFAULT 0,
  action     TEXT NOT NULL,
  content    TEXT,
  tool       TEXT,
  metadata   TEXT,
  created_at INTEGER NOT NULL,
  written_at INTEGER NOT NULL, message TEXT, message_dated INTEGER NOT NULL DEFAULT 0, sliced_bytes INTEGER NOT NULL DEFAULT 0, note TEXT, media TEXT, ends_turn TEXT, splits_run INTEGER NOT NULL DEFAULT 0, path_messages INTEGER, path_tokens INTEGER, more_messages INTEGER NOT NULL DEFAULT 0, more_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

CREATE UNIQUE INDEX cf_agents_events_by_id
  ON cf_agents_events (session_id, id)
  WHERE id_indexed = 1;

CREATE INDEX cf_agents_events_by_parent
  ON cf_agents_events (session_id, parent_seq)
  WHERE is_branch = 1;

CREATE TABLE cf_agents_changes (
  session_id TEXT NOT NULL,
  cursor     INTEGER NOT NULL,
  type       TEXT NOT NULL,
  id         TEXT,
  changed_at INTEGER NOT NULL, number INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, cursor)
) WITHOUT ROWID;

CREATE TABLE cf_agents_slices (
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  field      TEXT NOT NULL,
  part       INTEGER NOT NULL,
  text       TEXT NOT NULL,
  PRIMARY KEY (session_id, seq, field, part)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE cf_agents_search USING fts5 (
  stems,
  words,
  about,
  content = '',
  contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 0'
);

CREATE VIRTUAL TABLE cf_agents_search_words USING fts5vocab (cf_agents_search, row);

CREATE TABLE cf_agents_search_parts (
  rowid_    INTEGER PRIMARY KEY NOT NULL,
  number    INTEGER NOT NULL,
  seq       INTEGER NOT NULL
);

CREATE INDEX cf_agents_search_parts_by_event
  ON cf_agents_search_parts (number, seq);

CREATE TABLE cf_agents_compactions (
  session_id    TEXT NOT NULL,
  to_seq        INTEGER NOT NULL,
  from_seq      INTEGER NOT NULL,
  number        INTEGER NOT NULL,
  id            TEXT NOT NULL,
  above_seq     INTEGER NOT NULL,
  from_id       TEXT NOT NULL,
  to_id         TEXT NOT NULL,
  summary       TEXT NOT NULL,
  tokens_before INTEGER,
  tokens_after  INTEGER,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (session_id, to_seq, from_seq, number)
) WITHOUT ROWID;

CREATE TABLE cf_agents_tools (
  name           TEXT PRIMARY KEY NOT NULL,
  description    TEXT NOT NULL,
  parameters     TEXT NOT NULL,
  service        TEXT,
  url            TEXT,
  needs_approval INTEGER NOT NULL DEFAULT 0,
  defined_at     INTEGER NOT NULL
, headers TEXT, timeout_ms INTEGER, max_output_bytes INTEGER, server TEXT, asked_at INTEGER) WITHOUT ROWID;

CREATE TABLE cf_agents_blocks (
  number          INTEGER PRIMARY KEY,
  scope           TEXT NOT NULL,
  key             TEXT NOT NULL,
  label           TEXT NOT NULL,
  kind            TEXT NOT NULL,
  description     TEXT,
  max_tokens      INTEGER,
  default_content TEXT,
  source          TEXT,
  when_changed    TEXT NOT NULL,
  is_removed      INTEGER NOT NULL DEFAULT 0,
  defined_at      INTEGER NOT NULL, model_writes INTEGER, retention TEXT, metadata TEXT, tags TEXT, origin TEXT,
  UNIQUE (scope, key)
);

CREATE TABLE cf_agents_block_versions (
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  version    INTEGER NOT NULL,
  content    TEXT NOT NULL,
  written_by TEXT NOT NULL,
  session_id TEXT,
  turn_id    TEXT,
  reason     TEXT,
  written_at INTEGER NOT NULL, event_id TEXT, source TEXT,
  PRIMARY KEY (scope, key, version)
) WITHOUT ROWID;

CREATE TABLE cf_agents_entries (
  number     INTEGER PRIMARY KEY,
  scope      TEXT NOT NULL,
  block      TEXT NOT NULL,
  key        TEXT NOT NULL,
  title      TEXT,
  content    TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, note TEXT,
  UNIQUE (scope, block, key)
);

CREATE VIRTUAL TABLE cf_agents_entries_search USING fts5 (
  stems,
  words,
  about,
  content = '',
  contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 0'
);

CREATE TABLE cf_agents_skills (
  scope       TEXT NOT NULL,
  block       TEXT NOT NULL,
  key         TEXT NOT NULL,
  description TEXT,
  content     TEXT NOT NULL,
  updated_at  INTEGER NOT NULL, note TEXT,
  PRIMARY KEY (scope, block, key)
) WITHOUT ROWID;

CREATE TABLE cf_agents_skill_listings (
  scope     TEXT NOT NULL,
  block     TEXT NOT NULL,
  source    TEXT NOT NULL,
  skills    TEXT NOT NULL,
  listed_at INTEGER NOT NULL,
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

CREATE TABLE cf_agents_loaded_skills (
  session_id  TEXT NOT NULL,
  block       TEXT NOT NULL,
  key         TEXT NOT NULL,
  label       TEXT NOT NULL,
  content     TEXT,
  loaded_at   INTEGER NOT NULL,
  PRIMARY KEY (session_id, block, key)
) WITHOUT ROWID;

CREATE TABLE cf_agents_prompts (
  scope     TEXT PRIMARY KEY NOT NULL,
  prompt    TEXT NOT NULL,
  hash      TEXT NOT NULL,
  sections  TEXT NOT NULL,
  frozen_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE cf_agents_imports (
  session_id TEXT PRIMARY KEY NOT NULL,
  token      TEXT NOT NULL,
  touched_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE cf_agents_media (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  part       INTEGER NOT NULL,
  text       TEXT NOT NULL,
  PRIMARY KEY (session_id, hash, part)
) WITHOUT ROWID;

CREATE TABLE cf_agents_media_uses (
  session_id TEXT NOT NULL,
  hash       TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  PRIMARY KEY (session_id, hash, seq)
) WITHOUT ROWID;

CREATE TABLE cf_agents_entry_vectors (
  number INTEGER PRIMARY KEY NOT NULL,
  model  TEXT NOT NULL,
  vector TEXT NOT NULL
);

CREATE TABLE cf_agents_event_vectors (
  place  INTEGER PRIMARY KEY NOT NULL,
  model  TEXT NOT NULL,
  vector TEXT NOT NULL
);

CREATE TABLE cf_agents_usage_calls (
  session_id TEXT NOT NULL,
  id         TEXT NOT NULL,
  number     INTEGER NOT NULL,
  PRIMARY KEY (session_id, id)
) WITHOUT ROWID;

CREATE TABLE cf_agents_search_progress (
  number       INTEGER PRIMARY KEY NOT NULL,
  indexed_from INTEGER NOT NULL
);

CREATE TABLE cf_agents_early_answers (
  session_id   TEXT NOT NULL,
  number       INTEGER NOT NULL,
  part         INTEGER NOT NULL,
  tool_call_id TEXT NOT NULL,
  text         TEXT NOT NULL,
  PRIMARY KEY (session_id, number, part)
) WITHOUT ROWID;

CREATE TABLE cf_agents_last_turns (
  session_id    TEXT PRIMARY KEY NOT NULL,
  turn_id       TEXT,
  recoveries    INTEGER NOT NULL DEFAULT 0,
  answer_seq    INTEGER,
  input_tokens  INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  calibration   TEXT,
  state         TEXT
, cached_input_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0, usage_days TEXT) WITHOUT ROWID;

CREATE TABLE cf_agents_waiting (
  session_id  TEXT NOT NULL,
  number      INTEGER NOT NULL,
  part        INTEGER NOT NULL,
  turn_id     TEXT NOT NULL,
  message_ids TEXT NOT NULL,
  text        TEXT NOT NULL,
  PRIMARY KEY (session_id, number, part)
) WITHOUT ROWID;

CREATE TABLE cf_agents_callbacks (
  number     INTEGER PRIMARY KEY,
  id         TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  report     TEXT NOT NULL,
  attempts   INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER NOT NULL,
  reason     TEXT,
  failed_at  INTEGER
);

CREATE TABLE cf_agents_item_versions (
  scope      TEXT NOT NULL,
  block      TEXT NOT NULL,
  key        TEXT NOT NULL,
  slot       INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  title      TEXT,
  content    TEXT,
  note       TEXT NOT NULL,
  written_at INTEGER NOT NULL,
  PRIMARY KEY (scope, block, key, slot)
) WITHOUT ROWID;

CREATE INDEX cf_agents_deleted_items
    ON cf_agents_item_versions (scope, block, written_at)
 WHERE content IS NULL;

CREATE TABLE cf_agents_usage_days (
  day                 INTEGER NOT NULL,
  model               TEXT NOT NULL,
  turns               INTEGER NOT NULL,
  input_tokens        INTEGER NOT NULL,
  output_tokens       INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cost                REAL NOT NULL, failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, model)
) WITHOUT ROWID;

CREATE TABLE cf_agents_metered (
  day    INTEGER NOT NULL,
  holder TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost   REAL NOT NULL,
  starts TEXT NOT NULL,
  PRIMARY KEY (day, holder)
) WITHOUT ROWID;

CREATE TABLE cf_agents_item_counts (
  scope   TEXT NOT NULL,
  block   TEXT NOT NULL,
  entries INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  first_number INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

CREATE TABLE cf_agents_replacements (
  scope    TEXT NOT NULL,
  block    TEXT NOT NULL,
  key      TEXT NOT NULL,
  replacer TEXT NOT NULL,
  PRIMARY KEY (scope, block, key, replacer)
) WITHOUT ROWID;

CREATE INDEX cf_agents_sessions_by_retention
    ON cf_agents_sessions (number)
 WHERE retention IS NOT NULL;

CREATE INDEX cf_agents_sessions_by_learn_due
    ON cf_agents_sessions (learn_due_at)
 WHERE learn_due_at IS NOT NULL;

CREATE TABLE cf_agents_proposals (
  number     INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  kind       TEXT NOT NULL,
  status     TEXT NOT NULL,
  label      TEXT NOT NULL,
  note       TEXT NOT NULL,
  changes    TEXT NOT NULL
);

CREATE TABLE cf_agents_failed_turns (
  session_id TEXT NOT NULL,
  slot       INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  has_answer INTEGER NOT NULL,
  record     TEXT NOT NULL,
  PRIMARY KEY (session_id, slot)
) WITHOUT ROWID;

CREATE INDEX cf_agents_sessions_by_activity
  ON cf_agents_sessions (settled_at);

CREATE TABLE cf_agents_path_digests (
  digest     TEXT NOT NULL,
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  is_answer  INTEGER NOT NULL,
  PRIMARY KEY (digest, session_id)
) WITHOUT ROWID;

CREATE INDEX cf_agents_path_digests_by_session
  ON cf_agents_path_digests (session_id);

CREATE TABLE cf_agents_tool_authorizations (
  server     TEXT PRIMARY KEY NOT NULL,
  sealed     TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);

CREATE INDEX cf_agents_events_by_correction
  ON cf_agents_events (session_id, seq, more_messages, more_tokens)
  WHERE more_messages <> 0 OR more_tokens <> 0;
