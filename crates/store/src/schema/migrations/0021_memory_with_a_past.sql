-- Who wrote the newest text of an entry or a document, and when the text holds: JSON, see
-- memory/past.rs. NULL: written before this was kept.
ALTER TABLE cf_agents_entries ADD COLUMN note TEXT;
ALTER TABLE cf_agents_skills ADD COLUMN note TEXT;

-- Earlier texts of entries and documents. A text moves here when another one takes its
-- place, so a first write costs no row more, and a later one costs one. A slot is written
-- over when its turn comes round, so a key has a bounded number of rows.
CREATE TABLE cf_agents_item_versions (
  scope      TEXT NOT NULL,
  block      TEXT NOT NULL,     -- the block's key
  key        TEXT NOT NULL,     -- the entry's or the document's
  slot       INTEGER NOT NULL,  -- the version, modulo the number of versions that are kept
  version    INTEGER NOT NULL,  -- from 1
  title      TEXT,              -- an entry's title, or a document's description
  content    TEXT,              -- NULL: the item was deleted
  note       TEXT NOT NULL,     -- JSON, as above
  written_at INTEGER NOT NULL,  -- ms since the epoch
  PRIMARY KEY (scope, block, key, slot)
) WITHOUT ROWID;

-- Which deleted items of a block are remembered, oldest first. Only a delete writes here.
CREATE INDEX cf_agents_deleted_items
    ON cf_agents_item_versions (scope, block, written_at)
 WHERE content IS NULL;
