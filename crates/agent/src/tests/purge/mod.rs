//! Purging: what was purged is in no table, index and shadow tables included.

mod mentions;
mod receipts;
mod tables;
mod ways_in;

use crate::base::database::Database as _;
use crate::base::ids::Id;
use crate::lifecycle::purge::purge_events;
use crate::memory::purge::renew_tables;
use crate::store::erasing::{ENTRY_INDEX, EVENT_INDEX, all_tables};
use crate::store::schema::free_space::filled_bytes;
use crate::testing::Sqlite;
use crate::tests::Alice;

/// A word that nothing else says. The end of the word is looked for: an index of words
/// leaves out beginnings that words share.
pub const NEEDLE: &str = "zanzibarquux";
const NEEDLE_END: &str = "nzibarquux";

/// The tables, and the columns, that hold the needle after what follows a purge.
pub fn places_after_purge(db: &Sqlite) -> Vec<String> {
    renew_tables(db, &[EVENT_INDEX, ENTRY_INDEX]).unwrap();
    places_of_needle(db)
}

/// The tables, and the columns, that hold the needle.
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

/// SQLite gives a table that takes rows the pages that the same transaction freed, as they are.
#[test]
fn the_pages_of_a_table_that_took_rows_are_cleared_too() {
    let alice = Alice::with_session();
    let id = |text: &str| Id::parse(text.to_owned()).unwrap();
    let said = alice.say(&["x"]).remove(0);
    let (deleted, erasure) = purge_events(&alice.db, &alice.host, &id("s"), &[id(&said)]).unwrap();
    assert_eq!(deleted, 1);
    assert!(
        erasure.tables.contains(&"cf_agents_changes"),
        "{:?}",
        erasure.tables
    );
}

/// It may repeat a purge whose object died behind its transaction.
#[test]
fn a_purge_that_finds_nothing_clears_the_pages_of_all_tables() {
    let alice = Alice::with_session();
    let before = alice.db.dump();
    let id = |text: &str| Id::parse(text.to_owned()).unwrap();
    let (deleted, erasure) = purge_events(&alice.db, &alice.host, &id("s"), &[id("gone")]).unwrap();
    assert_eq!(deleted, 0);
    assert!(all_tables().all(|table| erasure.tables.contains(&table)));
    assert!(filled_bytes(&erasure.tables) > filled_bytes(&["cf_agents_events"]));
    assert!(alice.db.dump() == before);
}

/// Virtual tables show what their shadow tables hold, or columns of which they keep none.
fn is_made_of_others(table: &str) -> bool {
    ["cf_agents_search", "cf_agents_entries_search"].contains(&table)
}
