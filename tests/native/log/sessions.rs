//! Creating, listing, updating, forking and deleting sessions.

use serde_json::json;

use crate::{Alice, ids};
use base::database::Database;

#[test]
fn a_session_has_all_its_fields() {
    let alice = Alice::default();
    let session = alice.ok(
        "createSession",
        json!({"id": "s", "name": "first", "metadata": {"a": [1]}}),
    );
    assert_eq!(
        session,
        json!({
            "id": "s", "agentId": "alice", "name": "first", "parentSessionId": null,
            "createdAt": 1_000_000, "updatedAt": 1_000_000, "metadata": {"a": [1]},
            "usage": {"inputTokens": 0, "outputTokens": 0, "cost": 0.0}
        })
    );
    assert_eq!(alice.ok("getSession", json!({"sessionId": "s"})), session);
}

#[test]
fn a_session_created_without_an_id_gets_one() {
    let alice = Alice::default();
    let [a, b] = [(); 2].map(|()| alice.ok("createSession", json!({}))["id"].clone());
    assert_ne!(a, b);
    assert_eq!(alice.ok("getSession", json!({"sessionId": a}))["id"], a);
}

#[test]
fn an_existing_id_is_refused_and_changes_nothing() {
    let alice = Alice::default();
    alice.ok("createSession", json!({"id": "s", "name": "first"}));
    assert_eq!(
        alice.refused("createSession", json!({"id": "s", "name": "second"})),
        "already_exists"
    );
    assert_eq!(
        alice.ok("getSession", json!({"sessionId": "s"}))["name"],
        "first"
    );
}

#[test]
fn the_parent_session_must_exist() {
    let alice = Alice::with_session();
    let child = alice.ok("createSession", json!({"parentSessionId": "s"}));
    assert_eq!(child["parentSessionId"], "s");
    let error = alice
        .call("createSession", json!({"parentSessionId": "t"}))
        .unwrap_err();
    assert_eq!(error.code.name(), "session_not_found");
    assert_eq!(error.details()["field"], "parentSessionId");
}

#[test]
fn getting_a_missing_session_is_null_and_changing_it_an_error() {
    let alice = Alice::default();
    assert!(alice.ok("getSession", json!({"sessionId": "s"})).is_null());
    assert_eq!(
        alice.refused("updateSession", json!({"sessionId": "s"})),
        "session_not_found"
    );
    assert_eq!(
        alice.refused("addUsage", json!({"sessionId": "s"})),
        "session_not_found"
    );
    assert_eq!(
        alice.refused("loadEvents", json!({"sessionId": "s"})),
        "session_not_found"
    );
    assert_eq!(
        alice.refused("deleteEvents", json!({"sessionId": "s", "eventIds": []})),
        "session_not_found"
    );
    assert_eq!(
        alice.ok("deleteSession", json!({"sessionId": "s"})),
        json!({"deleted": false})
    );
}

#[test]
fn an_update_changes_only_named_fields_and_null_clears() {
    let alice = Alice::default();
    alice.ok(
        "createSession",
        json!({"id": "s", "name": "first", "metadata": {"a": 1}}),
    );
    alice.host.advance(5);
    let renamed = alice.ok("updateSession", json!({"sessionId": "s", "name": "second"}));
    assert_eq!(
        (&renamed["name"], &renamed["metadata"]),
        (&json!("second"), &json!({"a": 1}))
    );
    assert_eq!(
        (&renamed["createdAt"], &renamed["updatedAt"]),
        (&json!(1_000_000), &json!(1_000_005))
    );
    let cleared = alice.ok(
        "updateSession",
        json!({"sessionId": "s", "name": null, "metadata": null}),
    );
    assert!(cleared["name"].is_null() && cleared["metadata"].is_null());
}

#[test]
fn updated_at_changes_with_every_write() {
    let alice = Alice::with_session();
    let mut last = 1_000_000;
    let mut moved = |operation: &str| {
        let now = alice.ok("getSession", json!({"sessionId": "s"}))["updatedAt"]
            .as_i64()
            .unwrap();
        assert!(now > last, "{operation}");
        last = now;
        alice.host.advance(10);
    };
    alice.host.advance(10);
    // A caller's `createdAt` is the event's, and doesn't change the session's
    // `updatedAt`.
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"action": "user_message", "content": "a", "createdAt": 1}]}));
    moved("an append");
    let event_ids = alice.append_texts(&["b"]);
    moved("a second append");
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": event_ids}),
    );
    moved("a delete");
    alice.ok("addUsage", json!({"sessionId": "s", "inputTokens": 1}));
    moved("usage");
    alice.ok("updateSession", json!({"sessionId": "s", "name": "n"}));
    moved("an update");
}

#[test]
fn usage_is_summed() {
    let alice = Alice::with_session();
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": 3, "outputTokens": 4, "cost": 0.25}),
    );
    let session = alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": 10, "cost": 0.5}),
    );
    assert_eq!(
        session["usage"],
        json!({"inputTokens": 13, "outputTokens": 4, "cost": 0.75})
    );
    assert_eq!(
        alice.refused("addUsage", json!({"sessionId": "s", "cost": -1})),
        "invalid_request"
    );
    assert_eq!(
        alice.refused("addUsage", json!({"sessionId": "s", "inputTokens": 1.5})),
        "invalid_request"
    );
}

#[test]
fn sessions_are_listed_by_latest_activity_in_pages() {
    let alice = Alice::default();
    for id in ["a", "b", "c", "d", "e"] {
        alice.host.advance(1);
        alice.ok("createSession", json!({"id": id}));
    }
    alice.host.advance(1);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "b", "events": [{"action": "user_message", "content": "x"}]}),
    );

    let mut listed = Vec::new();
    let mut cursor = json!(null);
    let mut pages = 0;
    loop {
        let page = alice.ok("listSessions", json!({"limit": 2, "cursor": cursor}));
        listed.extend(ids(&page["sessions"]));
        cursor = page["cursor"].clone();
        pages += 1;
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, ["b", "e", "d", "c", "a"]);
    assert_eq!(pages, 3);
    let all = alice.ok("listSessions", json!({"limit": 5}));
    assert!(all["cursor"].is_null());
}

#[test]
fn sessions_with_equal_times_are_all_listed() {
    let alice = Alice::default();
    for id in ["a", "b", "c"] {
        alice.ok("createSession", json!({"id": id}));
    }
    let first = alice.ok("listSessions", json!({"limit": 2}));
    let second = alice.ok(
        "listSessions",
        json!({"limit": 2, "cursor": first["cursor"]}),
    );
    assert_eq!(ids(&first["sessions"]), ["c", "b"]);
    assert_eq!(ids(&second["sessions"]), ["a"]);
}

#[test]
fn an_unknown_cursor_is_refused() {
    let alice = Alice::default();
    let long = format!("1-1-1-1-0-{}", "A".repeat(4_001));
    for cursor in [
        "",
        "x",
        "1",
        "1-x",
        "-",
        "1-1-",
        "1-1-1-1",
        "1-1-1-1-0-!",
        &long,
    ] {
        let error = alice
            .call("listSessions", json!({"cursor": cursor}))
            .unwrap_err();
        assert_eq!(error.details()["field"], "cursor", "{cursor}");
    }
}

#[test]
fn deleting_a_session_removes_its_events_and_frees_its_id() {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two"]);
    assert_eq!(
        alice.ok("deleteSession", json!({"sessionId": "s"})),
        json!({"deleted": true})
    );
    assert!(!alice.db.dump().contains("one"));
    alice.ok("createSession", json!({"id": "s"}));
    assert!(alice.events().is_empty());
}

#[test]
fn a_corrupt_session_is_named_and_others_are_readable() {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    alice
        .db
        .run(
            "UPDATE cf_agents_sessions SET metadata = '{broken' WHERE id = 's'",
            &[],
        )
        .unwrap();
    let error = alice
        .call("getSession", json!({"sessionId": "s"}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["id"]),
        ("corrupt_row", &json!("s"))
    );
    assert_eq!(alice.ok("getSession", json!({"sessionId": "t"}))["id"], "t");
    let page = alice.ok("listSessions", json!({}));
    assert_eq!(ids(&page["sessions"]), ["t", "s"]);
    assert_eq!(page["sessions"][1]["corrupt"], true);
    assert!(page["sessions"][1]["metadata"].is_null());
    // An update mends the session.
    alice.ok("updateSession", json!({"sessionId": "s", "metadata": {}}));
    assert_eq!(
        alice.ok("getSession", json!({"sessionId": "s"}))["metadata"],
        json!({})
    );
}

#[test]
fn metadata_reads_back_verbatim() {
    let alice = Alice::default();
    let body = r#"{"id":"s","metadata":{"z":12345678901234567890,"a":1.0,"n":"a\u0000b\u2028"}}"#;
    alice
        .send(&alice.db, "createSession", body.as_bytes())
        .unwrap();
    let row = &alice
        .db
        .rows("SELECT metadata FROM cf_agents_sessions", &[])
        .unwrap()[0];
    assert_eq!(
        row.text(0).unwrap(),
        r#"{"z":12345678901234567890,"a":1.0,"n":"a\u0000b\u2028"}"#
    );
}
