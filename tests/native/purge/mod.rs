//! Purges: purged text is in no table, including index and shadow tables.

mod database_files;
mod documents;
mod entry_points;
mod mentions;
mod pending_operations;
mod receipts;
mod split_messages;
mod tables;

use serde_json::json;

use crate::Alice;
use api::dispatch::dispatch;
use base::database::Database as _;
use base::testing::{Sqlite, wait_for};
use conversation::tables::EVENTS_SEARCH;
use memory::purge::renew_tables;
use memory::tables::ENTRIES_SEARCH;
use store::schema::zeros::empty_free_pages;

/// A word that no other text contains. Its end is searched for: a word index omits prefixes that
/// words share.
pub const NEEDLE: &str = "zanzibarquux";
const NEEDLE_END: &str = "nzibarquux";

/// The tables and columns that contain the needle after the cleanup that follows a purge.
pub fn places_after_purge(db: &Sqlite) -> Vec<String> {
    renew_tables(db, &[EVENTS_SEARCH.name, ENTRIES_SEARCH.name], 0).unwrap();
    empty_free_pages(db).unwrap();
    places_of_needle(db)
}

/// The tables and columns that contain the needle.
pub fn places_of_needle(db: &Sqlite) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let tables = db.rows(sql, &[]).unwrap();
    let mut places = Vec::new();
    for table in &tables {
        let table = table.text(0).unwrap();
        if is_made_of_others(table) {
            continue;
        }
        for column in db.columns(table) {
            let sql = format!(
                "SELECT count(*) FROM \"{table}\"
                  WHERE instr(hex(\"{column}\"), hex('{NEEDLE_END}'))
                     OR instr(lower(CAST(\"{column}\" AS TEXT)), '{NEEDLE_END}')"
            );
            if db.rows(&sql, &[]).unwrap()[0].integer(0).unwrap() > 0 {
                places.push(format!("{table}.{column}"));
            }
        }
    }
    places
}

/// A tool's purge is recorded like an operation's, so that no later purge regards its pages as
/// clear.
#[test]
fn pages_are_cleared_after_a_models_deletion_or_its_turn() {
    let alice = Alice::with_session();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    let entry = json!({"label": "kb", "key": "k", "content": "x"});
    let forget =
        json!({"sessionId": "s", "name": "forget", "arguments": {"label": "kb", "key": "k"}});
    let agent = alice.agent(&alice.db);
    let forgets = || {
        wait_for(dispatch(&agent, "callTool", forget.to_string()))
            .unwrap()
            .purged
    };
    alice.ok("setEntry", entry);
    let left = forgets();
    assert!(left.is_written);
    assert_eq!(alice.work.pages.all_purges(), 1);
    // A purge that found nothing leaves no record.
    assert!(!forgets().needs_clearing());
    // Over MCP and in a turn, the pages are cleared at the end.
    alice.work.pages.mark_left(&left);
    assert!(alice.work.pages.take_left().needs_clearing());
    assert!(!alice.work.pages.take_left().needs_clearing());
}

/// Virtual tables show their shadow tables' contents, or columns that they do not store.
fn is_made_of_others(table: &str) -> bool {
    ["cf_agents_search", "cf_agents_entries_search"].contains(&table)
}
