//! How retention deletes: by the deletions of a purge, so that no text is left.
//!
//! A step overwrites the rows that it deletes. The indexes of words are merged once, at the
//! end of a run, and pages are cleared after it. Until then they hold single words of deleted
//! texts, which no search finds.

use base::error::Result;
use memory::label::Label;
use memory::purge::{ItemKeys, erase_entry_at};
use store::erasing::{ENTRY_INDEX, EVENT_INDEX, ErasingDatabase, all_tables};
use store::retention_progress::RetentionCounts;

/// The tables that a run deletes from where no session goes as a whole, and whose deleted
/// rows hold text, or that take rows meanwhile.
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

/// Deletes an entry and all its versions; `false`: it is not there. Part of a transaction.
pub fn erase_entry(db: &ErasingDatabase<'_>, scope: &str, block: &str, key: &str) -> Result<bool> {
    match Label::parse(block) {
        Ok(label) => erase_entry_at(db, &ItemKeys::new(scope, &label, key)),
        // No block has such a key.
        Err(_) => Ok(false),
    }
}

/// Takes the words of deleted texts out of the indexes: the last step of a run that deleted
/// anything. The steps before are other transactions, so all tables are named that a run
/// deletes from. Returns the tables whose pages may be cleared after the step's transaction.
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
