//! Backups: the file in the bucket is the export, it is there whole or not at all, and the
//! newest stay.

use serde_json::{Value, json};

use crate::testing::archive::Shelf;
use crate::tests::Alice;

const MIB: usize = 1 << 20;

/// An agent with about 12 MiB of messages and a bucket.
fn large() -> Alice {
    let alice = Alice::with_session();
    alice.outbound.shelf.get_or_init(Shelf::default);
    let events: Vec<Value> = (0..6)
        .map(|_| json!({"action": "user_message", "content": "x".repeat(MIB / 3)}))
        .collect();
    for _ in 0..6 {
        let body = json!({"sessionId": "s", "events": events});
        alice.ok("appendEvents", body);
    }
    alice
}

#[test]
fn a_backup_is_the_export_in_parts_of_one_length() {
    let alice = large();
    let before = alice.db.dump();
    let written = alice.ok("backup", json!({}));
    let shelf = alice.outbound.shelf.get().unwrap();
    let key = written["key"].as_str().unwrap();
    assert!(
        key.starts_with("alice/") && key.ends_with(".ndjson"),
        "{key}"
    );
    let file = shelf.objects.borrow()[key].clone();
    assert!(file == alice.export_agent().into_bytes());
    assert_eq!(written["bytes"], json!(file.len()));
    assert_eq!(
        (&written["sessions"], &written["deleted"]),
        (&json!(1), &json!(0))
    );
    let parts = shelf.parts.borrow().clone();
    let (last, others) = parts.split_last().unwrap();
    assert!(others.len() >= 2 && others.iter().all(|part| *part == 5 * MIB));
    assert!(*last <= 5 * MIB);
    assert!(alice.db.dump() == before, "a backup writes no row");
    let bob = Alice::default();
    bob.import_agent(&String::from_utf8(file).unwrap()).unwrap();
    assert!(bob.export_agent() == alice.export_agent());
}

#[test]
fn a_backup_that_fails_leaves_no_object_and_the_older_ones() {
    let alice = large();
    alice.ok("backup", json!({}));
    let shelf = alice.outbound.shelf.get().unwrap();
    let parts = shelf.parts.borrow().len();
    for after in 0..parts {
        shelf.parts.borrow_mut().clear();
        *shelf.fails_after.borrow_mut() = Some(after);
        alice.host.advance(1000);
        let error = alice.call("backup", json!({"keep": 1})).unwrap_err();
        assert_eq!(error.code.name(), "storage_failed");
        assert_eq!(shelf.objects.borrow().len(), 1);
        assert_eq!(*shelf.aborted.borrow(), after + 1);
    }
}

#[test]
fn the_newest_backups_of_this_agent_stay() {
    let alice = Alice::with_session();
    let shelf = alice.outbound.shelf.get_or_init(Shelf::default);
    for other in [
        "alice/notes.txt",
        "alice2/000000000000001.ndjson",
        "bob/000000000000001.ndjson",
    ] {
        shelf
            .objects
            .borrow_mut()
            .insert(other.to_owned(), Vec::new());
    }
    let mut keys = Vec::new();
    for _ in 0..5 {
        alice.host.advance(1000);
        let written = alice.ok("backup", json!({"keep": 3}));
        keys.push(written["key"].as_str().unwrap().to_owned());
    }
    let listed = alice.ok("listBackups", json!({}));
    let listed = listed["backups"].as_array().unwrap().clone();
    let listed: Vec<&str> = listed
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    let newest: Vec<&str> = keys.iter().rev().take(3).map(String::as_str).collect();
    assert_eq!(listed, newest);
    assert_eq!(shelf.objects.borrow().len(), 3 + 3, "others' objects stay");
}

#[test]
fn without_a_bucket_the_binding_is_named() {
    let alice = Alice::with_session();
    for operation in ["backup", "listBackups"] {
        let error = alice.call(operation, json!({})).unwrap_err();
        assert_eq!(error.code.name(), "not_configured");
        assert_eq!(error.details["binding"], "BACKUP_BUCKET");
    }
}
