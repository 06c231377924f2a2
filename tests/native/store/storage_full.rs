//! An object that has reached the limit of its storage.

use serde_json::{Value, json};

use crate::Alice;

/// Enough for some events, and few enough to be full soon.
const PAGES: i64 = 20;

/// An agent that accepted events until its storage was full, and the number of events in session
/// `s`. Session `t` has events, too.
fn full(is_searched: bool) -> (Alice, usize) {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    for session_id in ["s", "t"] {
        let events: Vec<Value> = (0..50).map(|_| event()).collect();
        alice.ok(
            "appendEvents",
            json!({"sessionId": session_id, "events": events}),
        );
    }
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable"}),
    );
    if is_searched {
        alice.ok("search", json!({"query": "parcel"}));
    }
    alice.db.leave_room(PAGES);
    let mut appended = 50;
    while alice.call("appendEvents", append()).is_ok() {
        appended += 1;
        assert!(appended < 10_000, "the storage is never full");
    }
    (alice, appended)
}

fn event() -> Value {
    json!({"action": "user_message", "content": "Where is my parcel? ".repeat(50)})
}

fn append() -> Value {
    json!({"sessionId": "s", "events": [event()]})
}

#[test]
fn a_write_to_a_full_object_is_refused_with_advice() {
    let (alice, appended) = full(true);
    let before = alice.db.dump();
    let many: Vec<Value> = (0..100).map(|_| event()).collect();
    for (operation, body) in [
        ("appendEvents", append()),
        ("appendEvents", json!({"sessionId": "s", "events": many})),
        (
            "setBlock",
            json!({"label": "memory", "content": "x".repeat(100_000)}),
        ),
        ("forkSession", json!({"sessionId": "s"})),
    ] {
        let error = alice.call(operation, body).unwrap_err();
        assert_eq!(error.code.name(), "storage_failed", "{operation}");
        assert!(error.message.contains("is full"), "{operation}");
        assert!(error.message.contains("delete events"), "{operation}");
        assert!(!error.message.contains("database"), "{operation}");
        assert_eq!(alice.db.dump(), before, "{operation}");
    }
    let path = alice.ok("getPathLength", json!({"sessionId": "s"}));
    assert_eq!(path["length"], appended);
}

#[test]
fn a_full_object_can_be_read() {
    let (alice, appended) = full(true);
    assert_eq!(alice.events().len(), appended);
    let page = alice.ok("getHistory", json!({"sessionId": "s", "limit": 10}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 10);
    let found = alice.ok("search", json!({"query": "parcel", "sessionId": "t"}));
    assert!(!found["results"].as_array().unwrap().is_empty());
    alice.ok("renderPrompt", json!({}));
    alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
}

#[test]
fn deleting_frees_capacity_in_a_full_object() {
    for operation in ["deleteSession", "clearMessages"] {
        let (alice, _) = full(false);
        alice.ok(operation, json!({"sessionId": "t"}));
        alice.ok("appendEvents", append());
    }
    let (alice, _) = full(true);
    alice.ok("destroy", json!({"confirm": "alice"}));
}

/// The index records each deletion, which takes capacity. This many events at once may be too many,
/// and a few are not.
#[test]
fn a_full_indexed_object_deletes_events_in_small_steps() {
    let (alice, _) = full(true);
    let events = alice.ok("loadEvents", json!({"sessionId": "t", "limit": 50}));
    for few in crate::ids(&events).chunks(10) {
        alice.ok("deleteEvents", json!({"sessionId": "t", "eventIds": few}));
    }
    alice.ok("deleteSession", json!({"sessionId": "t"}));
    alice.ok("appendEvents", append());
}
