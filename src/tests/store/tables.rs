//! Every table with rows of a session takes part in all that is done to a session.
//! The tables are read off the catalogue, of an object with rows in each, so that
//! a new one can't be forgotten: it is handled, or named here with the reason.

use std::collections::BTreeSet;

use serde_json::json;

use crate::api::transfer::begin_import;
use crate::api::turns::take_up_some;
use crate::base::database::Database;
use crate::tests::Alice;
use crate::tests::store::upgrades::make::{HALF_IMPORTED, make, outside};
use crate::tests::store::upgrades::{rows_of, tables};

/// Not copied with a fork: it is another session.
const NOT_FORKED: &[&str] = &[
    "cf_agents_changes",        // its feed begins with it
    "cf_agents_early_answers",  // taken where the turn ends
    "cf_agents_imports",        // only of one that isn't there yet
    "cf_agents_skill_listings", // a cache
    "cf_agents_turns",          // what runs goes on where it runs
    "cf_agents_usage_calls",    // its usage begins at nothing
];

/// Not in a session's file.
const NOT_EXPORTED: &[&str] = &[
    "cf_agents_early_answers",  // taken where the turn ends
    "cf_agents_imports",        // only of one that isn't there yet
    "cf_agents_skill_listings", // a cache
    "cf_agents_slices",         // made anew where a row is long, and the maker's is short
    "cf_agents_turns",          // what runs goes on where it runs
    "cf_agents_usage_calls",    // it guards against a retry, not against a copy
];

/// Never of a session alone, though a column may name one.
const OF_THE_AGENT: &[&str] = &[
    "cf_agents_config",
    "cf_agents_migrations",
    "cf_agents_tools",
];

fn names(tables: Vec<String>) -> BTreeSet<String> {
    tables.into_iter().collect()
}

fn without(tables: BTreeSet<String>, left_out: &[&str]) -> BTreeSet<String> {
    let is_kept = |table: &String| !left_out.contains(&table.as_str());
    tables.into_iter().filter(is_kept).collect()
}

#[test]
fn a_fork_has_rows_wherever_its_original_has() {
    let alice = make(true);
    for session in ["s", "mixed", "talked"] {
        let fork = alice.ok("forkSession", json!({"sessionId": session}));
        let copied = names(rows_of(&alice.db, fork["id"].as_str().unwrap()));
        let original = without(names(rows_of(&alice.db, session)), NOT_FORKED);
        let missing: Vec<_> = original.difference(&copied).collect();
        assert!(
            missing.is_empty(),
            "{session}: not in tree/fork.rs: {missing:?}"
        );
    }
}

#[test]
fn an_imported_session_has_rows_wherever_the_exported_one_has() {
    let alice = make(true);
    for session in ["s", "mixed", "talked"] {
        let file = alice.export(session).unwrap();
        let bob = Alice {
            outside: outside(),
            ..Alice::default()
        };
        bob.import(session, &file).unwrap();
        let imported = names(rows_of(&bob.db, session));
        let original = without(names(rows_of(&alice.db, session)), NOT_EXPORTED);
        let missing: Vec<_> = original.difference(&imported).collect();
        assert!(
            missing.is_empty(),
            "{session}: not in transfer/: {missing:?}"
        );
    }
}

#[test]
fn an_import_that_dies_leaves_rows_in_no_table() {
    let alice = make(true);
    let file = alice.export("mixed").unwrap();
    let bob = Alice {
        outside: outside(),
        ..Alice::default()
    };
    let before = bob.db.dump();
    // All of its lines are sent, one by one, and it is never finished.
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let mut import = begin_import(&bob.agent(&bob.db), "mixed".to_owned(), true).unwrap();
    for line in &lines[..lines.len() - 1] {
        import.push(&bob.db, &bob.host, line.as_bytes()).unwrap();
    }
    import.give_up(&bob.db).unwrap();
    assert!(bob.db.dump() == before);
    // Nor does one of a session that is there as far as it goes.
    alice.ok("createSession", json!({"id": HALF_IMPORTED}));
    assert_eq!(rows_of(&alice.db, HALF_IMPORTED), [] as [&str; 0]);
}

#[test]
fn a_deleted_session_leaves_rows_in_no_table() {
    let alice = make(true);
    // A turn that was cut off would only be asked to stop.
    drop(take_up_some(&alice.agent(&alice.db)));
    let count = |table: &str| {
        let rows = alice
            .db
            .rows(&format!("SELECT 1 FROM {table}"), &[])
            .unwrap();
        rows.len()
    };
    let listed = alice.ok("listSessions", json!({}));
    for session in crate::tests::ids(&listed["sessions"]) {
        alice.ok("deleteSession", json!({"sessionId": session}));
        assert_eq!(rows_of(&alice.db, &session), [] as [&str; 0], "{session}");
    }
    alice.ok("createSession", json!({"id": HALF_IMPORTED}));
    alice.ok("deleteSession", json!({"sessionId": HALF_IMPORTED}));
    // What is left is the agent's: also where a row says by a number whose it is.
    for table in tables(&alice.db) {
        let columns = alice.db.columns(&table);
        let is_scoped = columns.iter().any(|name| name == "scope");
        let is_left = match table.as_str() {
            "cf_agents_entry_vectors" => {
                assert_eq!(count(&table), count("cf_agents_entries"));
                continue;
            }
            table if OF_THE_AGENT.contains(&table) => continue,
            table if is_scoped => {
                let sql = format!("SELECT 1 FROM {table} WHERE scope <> ''");
                !alice.db.rows(&sql, &[]).unwrap().is_empty()
            }
            table => count(table) > 0,
        };
        assert!(!is_left, "{table} has rows of deleted sessions");
    }
    assert_eq!(count("cf_agents_search"), 0);
    assert_eq!(
        count("cf_agents_entries_search"),
        count("cf_agents_entries")
    );
}
