-- The definition of a block. The block's content is in other tables, under the same scope
-- and key. So a block of the deployed configuration needs no row here, and a block that
-- is removed and defined again finds its content.
CREATE TABLE cf_agents_blocks (
  number          INTEGER PRIMARY KEY,         -- the order of definition
  scope           TEXT NOT NULL,               -- a session's id; '' is the agent
  key             TEXT NOT NULL,               -- the label in lower case
  label           TEXT NOT NULL,
  kind            TEXT NOT NULL,               -- readonly, writable, searchable, loadable
  description     TEXT,
  max_tokens      INTEGER,
  default_content TEXT,
  source          TEXT,                        -- JSON object; NULL: this object
  when_changed    TEXT NOT NULL,               -- wait, remind
  is_removed      INTEGER NOT NULL DEFAULT 0,  -- 1: hides one of the deployed configuration
  defined_at      INTEGER NOT NULL,            -- ms since the epoch
  UNIQUE (scope, key)
);

-- The newest versions of a block's content. The newest one is the content, so a write is
-- one row.
CREATE TABLE cf_agents_block_versions (
  scope      TEXT NOT NULL,
  key        TEXT NOT NULL,
  version    INTEGER NOT NULL,  -- from 1; 0 is the default content
  content    TEXT NOT NULL,
  written_by TEXT NOT NULL,     -- tool, operation
  session_id TEXT,              -- in which it was written
  turn_id    TEXT,
  reason     TEXT,
  written_at INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (scope, key, version)
) WITHOUT ROWID;

-- Entries of searchable blocks. An entry's number is its row in the index.
CREATE TABLE cf_agents_entries (
  number     INTEGER PRIMARY KEY,
  scope      TEXT NOT NULL,
  block      TEXT NOT NULL,     -- the block's key
  key        TEXT NOT NULL,
  title      TEXT,
  content    TEXT NOT NULL,
  created_at INTEGER NOT NULL,  -- ms since the epoch
  updated_at INTEGER NOT NULL,  -- ms since the epoch
  UNIQUE (scope, block, key)
);

-- The words of the entries, cut and stemmed like those of the log.
CREATE VIRTUAL TABLE cf_agents_entries_search USING fts5 (
  stems,                     -- the content, words reduced to their stems
  words,                     -- the content and the title, words as they are written
  about,                     -- the title's and the key's stems
  content = '',
  contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 0'
);

-- The number of entries that a word occurs in, for the ranking.
CREATE VIRTUAL TABLE cf_agents_entries_search_words USING fts5vocab (cf_agents_entries_search, row);

-- Documents of loadable blocks that live in this object.
CREATE TABLE cf_agents_skills (
  scope       TEXT NOT NULL,
  block       TEXT NOT NULL,
  key         TEXT NOT NULL,
  description TEXT,
  content     TEXT NOT NULL,
  updated_at  INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (scope, block, key)
) WITHOUT ROWID;

-- What a bucket held under a block's prefix when it was last listed. It counts for a
-- minute.
CREATE TABLE cf_agents_skill_listings (
  scope     TEXT NOT NULL,
  block     TEXT NOT NULL,
  source    TEXT NOT NULL,       -- the listing of another prefix is of no use
  skills    TEXT NOT NULL,       -- JSON array
  listed_at INTEGER NOT NULL,    -- ms since the epoch
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

-- The documents in a session's context. An unloaded document keeps its row: the row says
-- that the document's text in the log is hidden.
CREATE TABLE cf_agents_loaded_skills (
  session_id  TEXT NOT NULL,
  block       TEXT NOT NULL,
  key         TEXT NOT NULL,
  label       TEXT NOT NULL,
  content     TEXT,              -- as it was loaded; NULL: unloaded
  loaded_at   INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (session_id, block, key)
) WITHOUT ROWID;

-- The frozen system prompt: it stays the same until it is refreshed.
CREATE TABLE cf_agents_prompts (
  scope     TEXT PRIMARY KEY NOT NULL,
  prompt    TEXT NOT NULL,
  hash      TEXT NOT NULL,       -- SHA-256 of the prompt, hex
  sections  TEXT NOT NULL,       -- JSON object: a remind block's key to its section's hash
  frozen_at INTEGER NOT NULL     -- ms since the epoch
) WITHOUT ROWID;
