//! Fault injection: for every write operation, the nth statement fails, for every n. Afterwards the
//! storage is in the state before the operation or after it, never in between.

use serde_json::json;

use crate::Alice;
use crate::api::examples::{Example, examples, populated};
use base::database::Database;
use base::error::Code;
use base::testing::{Failing, FixedHost, Sqlite};
use store::schema;

#[test]
fn every_write_is_all_or_nothing_whichever_statement_fails() {
    sweep(populated);
}

#[test]
fn every_write_is_all_or_nothing_with_a_search_index() {
    sweep(|| {
        let alice = populated();
        alice.ok("search", json!({"query": "anything"}));
        alice
    });
}

#[test]
fn a_first_search_that_fails_leaves_no_half_an_index() {
    let mut tried = 0;
    loop {
        let alice = populated();
        let before = alice.db.dump();
        let failing = Failing::after(&alice.db, tried);
        let found = alice.send(&failing, "search", br#"{"query": "parcel"}"#);
        if !failing.has_failed() {
            assert_eq!(found.unwrap()["results"].as_array().unwrap().len(), 1);
            break;
        }
        // Either the index is complete and in use, or nothing of it is stored.
        found.unwrap_err();
        let in_use = alice
            .db
            .rows("SELECT 1 FROM cf_agents_config WHERE key = 'search'", &[])
            .unwrap()
            .len()
            == 1;
        assert!(in_use || alice.db.dump() == before, "statement {tried}");
        assert_eq!(
            alice.ok("search", json!({"query": "parcel"}))["results"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        tried += 1;
    }
    assert!(tried > 5);
}

/// Sends the examples of every operation that writes, and fails their statements one by
/// one.
fn sweep(populated: fn() -> Alice) {
    for example in examples() {
        let Example { operation, body } = &example;
        if !example.writes() {
            continue;
        }
        let mut tried = 0;
        loop {
            let alice = populated();
            let before = alice.db.dump();
            let failing = Failing::after(&alice.db, tried);
            let outcome = alice.send(&failing, operation, body.to_string().as_bytes());
            if !failing.has_failed() {
                outcome.unwrap();
                assert!(alice.db.dump() != before, "{operation} writes: {body}");
                break;
            }
            let error = outcome.expect_err(operation);
            assert_eq!(
                error.code,
                Code::StorageFailed,
                "{operation}, statement {tried}"
            );
            assert!(alice.db.dump() == before, "{operation}, statement {tried}");
            // The same request, sent again, succeeds.
            alice
                .send(&alice.db, operation, body.to_string().as_bytes())
                .unwrap();
            tried += 1;
        }
        assert!(tried > 0, "{operation} writes");
    }
}

#[test]
fn reads_write_nothing_even_when_they_fail() {
    let alice = populated();
    // The first search builds the index.
    alice.ok("search", json!({"query": "anything"}));
    let before = alice.db.dump();
    for example in examples() {
        let Example { operation, body } = &example;
        if example.writes() || example.begins_turn() {
            continue;
        }
        for passing in 0.. {
            let failing = Failing::after(&alice.db, passing);
            let outcome = alice.send(&failing, operation, body.to_string().as_bytes());
            assert!(
                alice.db.dump() == before,
                "{operation}, statement {passing}"
            );
            if !failing.has_failed() {
                outcome.unwrap();
                break;
            }
        }
    }
}

#[test]
fn a_failed_migration_rolls_back_and_runs_again() {
    let host = FixedHost::default();
    let mut tried = 0;
    loop {
        let db = Sqlite::new();
        let failing = Failing::after(&db, tried);
        let outcome = schema::migrate(&failing, &host);
        if !failing.has_failed() {
            outcome.unwrap();
            break;
        }
        // If the first statement fails, `migrate` reads the catalog, finds no table and continues.
        if tried > 0 {
            outcome.unwrap_err();
            assert_eq!(db.rows("SELECT name FROM sqlite_master", &[]).unwrap(), []);
            schema::migrate(&db, &host).unwrap();
        }
        tried += 1;
    }
    assert!(tried > 3);
}
