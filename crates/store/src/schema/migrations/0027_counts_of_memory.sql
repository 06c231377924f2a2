-- How many entries a block has beside those that the numbers of its range count, and how
-- many of its deleted items are remembered: see memory/counts.rs.
CREATE TABLE cf_agents_item_counts (
  scope   TEXT NOT NULL,
  block   TEXT NOT NULL,     -- the block's key
  entries INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  -- Where the range of numbers begins that the block's entries have to themselves; 0: the
  -- block has no such entries. See memory/entry_number.rs.
  first_number INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

INSERT INTO cf_agents_item_counts (scope, block, entries, deleted)
SELECT scope, block, sum(entries), sum(deleted)
  FROM (SELECT scope, block, count(*) AS entries, 0 AS deleted
          FROM cf_agents_entries
         GROUP BY scope, block
        UNION ALL
        SELECT scope, block, 0, count(*)
          FROM cf_agents_item_versions
         WHERE content IS NULL
         GROUP BY scope, block)
 GROUP BY scope, block;

-- Which entries say that they replace which. An entry's note says the same; here it is
-- found by the entry that is replaced.
CREATE TABLE cf_agents_replacements (
  scope    TEXT NOT NULL,
  block    TEXT NOT NULL,    -- the block's key
  key      TEXT NOT NULL,    -- the entry that is replaced
  replacer TEXT NOT NULL,    -- the key of the entry that replaces it
  PRIMARY KEY (scope, block, key, replacer)
) WITHOUT ROWID;

INSERT OR IGNORE INTO cf_agents_replacements (scope, block, key, replacer)
SELECT e.scope, e.block, replaced.value, e.key
  FROM cf_agents_entries AS e
 CROSS JOIN json_each(iif(json_valid(e.note), e.note, '{}'), '$.supersedes') AS replaced;

-- How often a word stands in all blocks together says something of other sessions' blocks,
-- and nobody asks for it any more.
DROP TABLE cf_agents_entries_search_words;
