//! How retention deletes: with the deletions of a purge, so that no text remains.
//!
//! A step overwrites the rows that it deletes. The full-text indexes are merged once, at
//! the end of a run, and pages are cleared afterwards. Until then they contain single words
//! of deleted texts, which no search finds.

use crate::tables::all_tables;
use base::error::Result;
use base::tables::Table;
use conversation::tables::{
    CHANGES, COMPACTIONS, EVENT_VECTORS, EVENTS, EVENTS_SEARCH, FAILED_TURNS, LAST_TURNS, MEDIA,
    SESSIONS, SLICES,
};
use memory::label::Label;
use memory::purge::{ItemKeys, erase_entry_at};
use memory::tables::{
    BLOCK_VERSIONS, ENTRIES, ENTRIES_SEARCH, ENTRY_VECTORS, ITEM_COUNTS, ITEM_VERSIONS, PROMPTS,
    PROPOSALS,
};
use store::erasing::ErasingDatabase;
use store::retention_progress::RetentionCounts;
use store::tables::{CALLBACKS, CONFIG};

/// The tables that a run deletes from even if it deletes no whole session, and whose
/// deleted rows contain text or whose pages receive new rows in the meantime.
const TABLES: &[&Table] = &[
    EVENTS,
    SLICES,
    COMPACTIONS,
    MEDIA,
    BLOCK_VERSIONS,
    ITEM_VERSIONS,
    ENTRIES,
    ENTRY_VECTORS,
    EVENT_VECTORS,
    PROMPTS,
    SESSIONS,
    LAST_TURNS,
    CALLBACKS,
    CHANGES,
    CONFIG,
    FAILED_TURNS,
    ITEM_COUNTS,
    PROPOSALS,
];

/// Deletes an entry and all its versions. `false`: it doesn't exist. Must run in a
/// transaction.
pub fn erase_entry(db: &ErasingDatabase<'_>, scope: &str, block: &str, key: &str) -> Result<bool> {
    match Label::parse(block) {
        Ok(label) => erase_entry_at(db, &ItemKeys::new(scope, &label, key)),
        // No block has such a label.
        Err(_) => Ok(false),
    }
}

/// Removes the words of deleted texts from the indexes: the last step of a run that deleted
/// anything. Earlier steps ran in other transactions, so this step touches every table that
/// a run deletes from. Returns the tables whose pages may be cleared after the step's
/// transaction.
pub fn finish(db: &ErasingDatabase<'_>, gone: &[&RetentionCounts]) -> Vec<&'static str> {
    db.merge_index(EVENTS_SEARCH.name);
    db.merge_index(ENTRIES_SEARCH.name);
    TABLES.iter().for_each(|table| db.touch(table.name));
    // A session has rows in every table.
    if gone.iter().any(|gone| gone.sessions.count > 0) {
        all_tables().for_each(|table| db.touch(table));
    }
    db.take_tables()
}
