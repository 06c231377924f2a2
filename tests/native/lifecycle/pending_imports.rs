//! Abandoned imports: their rows are invisible, and a later import deletes them.

use serde_json::{Value, json};

use crate::Alice;
use crate::lifecycle::transfer::{refused, small};
use api::answers;
use api::transfer::begin_import;
use base::database::Database;
use base::testing::Failing;

const HOUR_MS: i64 = 3_600_000;

#[test]
fn an_import_that_dies_is_invisible_and_can_be_repeated() {
    let alice = small();
    // An event so long that it has slices, then an entry of the feed.
    alice.append_texts(&["x".repeat(1_950_000).as_str()]);
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["m"]}),
    );
    alice.remember("s");
    let file = alice.export("s").unwrap();
    let complete = Alice::default();
    complete.import("s", &file).unwrap();
    let mut tried = 0;
    loop {
        let bob = Alice::default();
        let failing = Failing::after(&bob.db, tried);
        let outcome = bob.import_in(&failing, "s", &file, 1_000_000);
        if !failing.has_failed() {
            outcome.unwrap();
            break;
        }
        assert_eq!(refused(outcome).0, "storage_failed", "statement {tried}");
        assert_eq!(bob.ok("getSession", json!({"sessionId": "s"})), Value::Null);
        for read in ["loadEvents", "getHistory", "getChanges"] {
            assert_eq!(
                bob.refused(read, json!({"sessionId": "s"})),
                "session_not_found"
            );
        }
        bob.import("s", &file).unwrap();
        assert_eq!(bob.rows(), complete.rows(), "statement {tried}");
        tried += 1;
    }
    assert!(tried > 35, "{tried}");
}

/// An agent `bob` and its import into `s`, which has written its first batch.
fn partial_import() -> (Alice, lifecycle::transfer::import::Import, String) {
    let alice = Alice::with_session();
    let texts: Vec<String> = (0..600).map(|n| format!("event {n}")).collect();
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    let mut import = begin_import(&bob.agent(&bob.db), "s".to_owned(), false).unwrap();
    let (head, rest) = file.split_at(file.len() - 200);
    import.push(&bob.db, &bob.host, head.as_bytes()).unwrap();
    let staged = bob.db.rows("SELECT 1 FROM cf_agents_events", &[]).unwrap();
    assert_eq!(staged.len(), 500);
    (bob, import, rest.to_owned())
}

#[test]
fn a_session_created_during_an_import_wins() {
    let (bob, mut import, rest) = partial_import();
    bob.ok("createSession", json!({"id": "s"}));
    assert_eq!(bob.events(), [] as [Value; 0]);
    let outcome = import
        .push(&bob.db, &bob.host, rest.as_bytes())
        .and_then(|()| import.finish(&bob.db, &bob.host));
    answers::assert_output_matches_schema("importSession", &outcome);
    assert_eq!(refused(outcome).0, "already_exists");
    assert_eq!(bob.events(), [] as [Value; 0]);
}

#[test]
fn the_later_of_two_concurrent_imports_wins() {
    let (bob, mut import, rest) = partial_import();
    let file = small().export("s").unwrap();
    let mut later = begin_import(&bob.agent(&bob.db), "s".to_owned(), false).unwrap();
    later.push(&bob.db, &bob.host, file.as_bytes()).unwrap();
    let outcome = import
        .push(&bob.db, &bob.host, rest.as_bytes())
        .and_then(|()| import.finish(&bob.db, &bob.host));
    answers::assert_output_matches_schema("importSession", &outcome);
    assert_eq!(refused(outcome).0, "already_exists");
    later.finish(&bob.db, &bob.host).unwrap();
    assert_eq!(bob.events().len(), 3);
}

#[test]
fn the_next_import_deletes_rows_of_an_abandoned_one() {
    let (bob, import, _) = partial_import();
    drop(import);
    let file = small().export("s").unwrap();
    let count = || {
        bob.db
            .rows("SELECT 1 FROM cf_agents_events", &[])
            .unwrap()
            .len()
    };
    // The import of `s` is younger than an hour, so it may still continue.
    bob.import("t", &file).unwrap();
    assert_eq!(count(), 503);
    bob.host.advance(HOUR_MS);
    bob.import("u", &file).unwrap();
    assert_eq!(count(), 6);
    assert!(
        bob.db
            .rows("SELECT 1 FROM cf_agents_imports", &[])
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_import_is_discarded_when_its_sender_disconnects() {
    let (bob, mut import, _) = partial_import();
    import.abandon(&bob.db).unwrap();
    assert_eq!(bob.db.dump(), Alice::default().db.dump());
}
