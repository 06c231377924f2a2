//! How retention deletes: with the deletions of a purge, so that no text remains.
//!
//! A step overwrites the rows that it deletes. The full-text indexes are merged once, at
//! the end of a run, and pages are cleared afterwards. Until then they contain single words
//! of deleted texts, which no search finds.

use base::error::Result;
use memory::label::Label;
use memory::purge::{ItemKeys, erase_entry_at};
use store::erasing::{ENTRY_INDEX, EVENT_INDEX, ErasingDatabase, all_tables};
use store::retention_progress::RetentionCounts;

/// The tables that a run deletes from even if it deletes no whole session, and whose
/// deleted rows contain text or whose pages receive new rows in the meantime.
const TABLES: &[&str] = &[
    "cf_agents_events",
    "cf_agents_slices",
    "cf_agents_compactions",
    "cf_agents_media",
    "cf_agents_block_versions",
    "cf_agents_item_versions",
    "cf_agents_entries",
    "cf_agents_entry_vectors",
    "cf_agents_event_vectors",
    "cf_agents_prompts",
    "cf_agents_sessions",
    "cf_agents_last_turns",
    "cf_agents_callbacks",
    "cf_agents_changes",
    "cf_agents_config",
    "cf_agents_failed_turns",
    "cf_agents_item_counts",
    "cf_agents_proposals",
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
    db.merge_index(EVENT_INDEX);
    db.merge_index(ENTRY_INDEX);
    TABLES.iter().for_each(|table| db.touch(table));
    // A session has rows in every table.
    if gone.iter().any(|gone| gone.sessions.count > 0) {
        all_tables().for_each(|table| db.touch(table));
    }
    db.take_tables()
}
