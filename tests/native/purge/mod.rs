//! Purging: what was purged is in no table, index and shadow tables included.

mod documents;
mod meanwhile;
mod mentions;
mod parted;
mod receipts;
mod tables;
mod ways_in;

use serde_json::{Value, json};

use crate::Alice;
use api::dispatch::dispatch;
use base::database::Database as _;
use base::ids::Id;
use base::testing::{Sqlite, wait_for};
use lifecycle::purge::purge_events;
use memory::purge::renew_tables;
use store::clearing::PageClearing;
use store::erasing::{ENTRY_INDEX, EVENT_INDEX, all_tables};
use store::schema::free_space::FILLED_BYTES;

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
        erasure.left.tables.contains(&"cf_agents_changes"),
        "{:?}",
        erasure.left
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
    let pages = PageClearing::default();
    pages.note(&erasure.left);
    let clearing = pages.begin(&erasure.left).unwrap();
    assert!(all_tables().all(|table| clearing.tables.contains(&table)));
    assert!(clearing.filled_bytes() > FILLED_BYTES);
    assert!(alice.db.dump() == before);
}

/// What the object clears after the answer of a request.
fn cleared(alice: &Alice, operation: &str, body: &Value) -> Vec<&'static str> {
    let agent = alice.agent(&alice.db);
    let reply = wait_for(dispatch(&agent, operation, body.to_string())).unwrap();
    let Some(clearing) = alice.turns.pages.begin(&reply.purged) else {
        return Vec::new();
    };
    let tables = clearing.tables.clone();
    clearing.succeed();
    tables
}

#[test]
fn a_purge_that_finds_nothing_rewrites_others_rows_once_in_a_life() {
    let alice = Alice::with_session();
    let said = alice.say(&["x"]).remove(0);
    let gone = json!({"sessionId": "s", "messageIds": ["gone"], "purge": true});
    let all = cleared(&alice, "deleteMessages", &gone);
    assert!(all_tables().all(|table| all.contains(&table)));
    for (operation, body) in [
        ("deleteMessages", gone.clone()),
        (
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ["gone"], "purge": true}),
        ),
        ("deleteSession", json!({"sessionId": "gone", "purge": true})),
        ("removeBlock", json!({"label": "gone", "purge": true})),
        (
            "erase",
            json!({"places": [{"kind": "event", "sessionId": "s", "id": "gone"}]}),
        ),
        (
            "erase",
            json!({"places": [{"kind": "session", "sessionId": "gone"}]}),
        ),
    ] {
        let nothing: [&str; 0] = [];
        assert_eq!(cleared(&alice, operation, &body), nothing, "{operation}");
    }
    // One that takes something clears what it took.
    let real = json!({"sessionId": "s", "eventIds": [said], "purge": true});
    let some = cleared(&alice, "deleteEvents", &real);
    assert!(some.contains(&"cf_agents_events"), "{some:?}");
    assert!(!all_tables().all(|table| some.contains(&table)));
    assert!(cleared(&alice, "deleteMessages", &gone).is_empty());
    // So does one whose rows stay.
    alice.ok("updateSession", json!({"sessionId": "s", "name": "mine"}));
    let name = json!({"places": [{"kind": "session", "sessionId": "s"}]});
    let some = cleared(&alice, "erase", &name);
    assert!(some.contains(&"cf_agents_sessions"), "{some:?}");
}

/// A tool's purge is noted as an operation's is, so that no later purge takes its pages for clear.
#[test]
fn what_a_model_forgets_is_cleared_after_the_call_or_after_the_turn() {
    let alice = Alice::with_session();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    let entry = json!({"label": "kb", "key": "k", "content": "x"});
    let gone = json!({"sessionId": "s", "messageIds": ["gone"], "purge": true});
    cleared(&alice, "deleteMessages", &gone);
    let forget =
        json!({"sessionId": "s", "name": "forget", "arguments": {"label": "kb", "key": "k"}});
    alice.ok("setEntry", entry.clone());
    let some = cleared(&alice, "callTool", &forget);
    assert!(some.contains(&"cf_agents_entries"), "{some:?}");
    // All that was left is cleared, so nothing is rewritten for a purge that finds nothing.
    assert!(cleared(&alice, "deleteMessages", &gone).is_empty());
    assert!(cleared(&alice, "callTool", &forget).is_empty());
    // Over MCP, and in a turn, the pages wait for the end.
    alice.ok("setEntry", entry);
    let agent = alice.agent(&alice.db);
    let reply = wait_for(dispatch(&agent, "callTool", forget.to_string())).unwrap();
    alice.turns.pages.leave_again(&reply.purged);
    let left = alice.turns.pages.take_left();
    assert!(left.tables.contains(&"cf_agents_entries"), "{left:?}");
    // Until then, a purge that finds nothing does not take the pages for clear.
    let all = cleared(&alice, "deleteMessages", &gone);
    assert!(all_tables().all(|table| all.contains(&table)));
}

/// Virtual tables show what their shadow tables hold, or columns of which they keep none.
fn is_made_of_others(table: &str) -> bool {
    ["cf_agents_search", "cf_agents_entries_search"].contains(&table)
}
