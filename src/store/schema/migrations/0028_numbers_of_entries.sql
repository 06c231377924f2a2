-- The first number of the range that the block's entries have to themselves; 0: it has no
-- such entries. See memory/entry_number.rs.
ALTER TABLE cf_agents_item_counts ADD COLUMN first_number INTEGER NOT NULL DEFAULT 0;

-- Entries are counted by the numbers of their range.
DELETE FROM cf_agents_config WHERE key = 'countedEntries';
