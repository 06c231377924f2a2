//! Manual retention: dry runs for one session or block, rules that are not stored, and deletions in
//! one session.

use serde_json::{Value, json};

use crate::Alice;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// An agent with sessions `s` and `t`, and blocks `kb` and `notes`, ten days old.
fn ten_days_old() -> Alice {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    alice.append_texts(&["a", "b", "c"]);
    let event = json!([{"action": "user_message", "content": "t"}]);
    alice.ok("appendEvents", json!({"sessionId": "t", "events": event}));
    for (session, label) in [(None, "kb"), (None, "notes"), (Some("s"), "kb")] {
        let block = json!({"sessionId": session, "label": label, "kind": "searchable"});
        alice.ok("defineBlock", block);
        for key in ["x", "y"] {
            let entry =
                json!({"sessionId": session, "label": label, "key": key, "content": "fact"});
            alice.ok("setEntry", entry);
        }
    }
    alice.host.advance(10 * DAY);
    alice
}

fn dry_run_counts(alice: &Alice, body: Value) -> [i64; 3] {
    let mut body = body;
    body["dryRun"] = json!(true);
    let before = alice.db.dump();
    let found = alice.ok("applyRetention", body);
    assert!(alice.db.dump() == before, "a dry run writes nothing");
    assert_eq!(found["complete"], true);
    ["sessions", "events", "entries"].map(|kind| found["gone"][kind]["count"].as_i64().unwrap())
}

#[test]
fn a_dry_run_can_test_unset_rules_at_each_level() {
    let alice = ten_days_old();
    let events = json!({"eventsDays": 5, "entriesDays": 5});
    assert_eq!(dry_run_counts(&alice, json!({})), [0, 0, 0]);
    assert_eq!(
        dry_run_counts(&alice, json!({"retention": events})),
        [0, 4, 6]
    );
    assert_eq!(
        dry_run_counts(&alice, json!({"retention": {"eventsDays": 11}})),
        [0, 0, 0]
    );
    assert_eq!(
        dry_run_counts(&alice, json!({"sessionId": "s", "retention": events})),
        [0, 3, 2]
    );
    assert_eq!(
        dry_run_counts(&alice, json!({"sessionId": "t", "retention": events})),
        [0, 1, 0]
    );
    let entries = json!({"entriesDays": 5});
    assert_eq!(
        dry_run_counts(&alice, json!({"label": "KB", "retention": entries})),
        [0, 0, 2]
    );
    assert_eq!(
        dry_run_counts(
            &alice,
            json!({"sessionId": "s", "label": "kb", "retention": entries})
        ),
        [0, 0, 2]
    );
    let idle = json!({"retention": {"sessionsIdleDays": 5}});
    assert_eq!(dry_run_counts(&alice, idle), [2, 0, 0]);
}

#[test]
fn a_dry_run_without_rules_uses_those_in_effect() {
    let alice = ten_days_old();
    alice.ok(
        "configureAgent",
        json!({"retention": {"eventsDays": 5, "entriesDays": 5}}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "searchable", "retention": {"entriesDays": null}}),
    );
    alice.ok(
        "updateSession",
        json!({"sessionId": "t", "retention": {"eventsDays": null}}),
    );
    assert_eq!(dry_run_counts(&alice, json!({})), [0, 3, 4]);
    assert_eq!(dry_run_counts(&alice, json!({"sessionId": "s"})), [0, 3, 2]);
    assert_eq!(dry_run_counts(&alice, json!({"sessionId": "t"})), [0, 0, 0]);
    assert_eq!(dry_run_counts(&alice, json!({"label": "notes"})), [0, 0, 0]);
    assert_eq!(dry_run_counts(&alice, json!({"label": "kb"})), [0, 0, 2]);
    // Rules in the call replace those of the session or block, and the outer ones still apply.
    let without_rules = json!({"sessionId": "t", "retention": {}});
    assert_eq!(dry_run_counts(&alice, without_rules), [0, 1, 0]);
    alice.ok("updateSession", json!({"sessionId": "s", "pinned": true}));
    assert_eq!(dry_run_counts(&alice, json!({"sessionId": "s"})), [0, 0, 0]);
}

#[test]
fn a_session_step_deletes_only_there_and_resumes_by_cursor() {
    let alice = ten_days_old();
    for _ in 0..30 {
        alice.append_texts(&["old"; 60]);
    }
    alice.host.advance(10 * DAY);
    alice.append_texts(&["young"]);
    let mut body = json!({"sessionId": "s", "retention": {"eventsDays": 5}});
    let (mut deleted, mut calls) = (0, 0);
    loop {
        let step = alice.ok("applyRetention", body.clone());
        deleted += step["gone"]["events"]["count"].as_i64().unwrap();
        calls += 1;
        assert_eq!(step["complete"] == true, step["cursor"].is_null());
        if step["cursor"].is_null() {
            break;
        }
        body["cursor"] = step["cursor"].clone();
    }
    assert_eq!(deleted, 3 + 30 * 60);
    assert!(calls > 3, "{calls}");
    assert_eq!(alice.events().len(), 1);
    let other = alice.ok("loadEvents", json!({"sessionId": "t"}));
    assert_eq!(other.as_array().unwrap().len(), 1);
    // No rule is stored.
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["retention"], Value::Null);
}

#[test]
fn a_request_that_would_delete_more_than_it_names_is_refused() {
    let alice = ten_days_old();
    let before = alice.db.dump();
    for (body, field) in [
        (json!({"retention": {"eventsDays": 1}}), "retention"),
        (json!({"label": "kb"}), "label"),
        (json!({"sessionId": "s", "label": "kb"}), "label"),
        (json!({"cursor": "{}"}), "cursor"),
        (json!({"sessionId": "s", "cursor": "{}"}), "cursor"),
        (
            json!({"sessionId": "s", "cursor": r#"{"number": 2}"#}),
            "cursor",
        ),
        (json!({"dryRun": true, "cursor": "{}"}), "cursor"),
        (
            json!({"dryRun": true, "label": "kb", "retention": {"eventsDays": 1}}),
            "retention.eventsDays",
        ),
    ] {
        let error = alice.call("applyRetention", body.clone()).unwrap_err();
        assert_eq!(error.details()["field"], field, "{body}");
    }
    let unknown = json!({"dryRun": true, "sessionId": "nobody"});
    assert_eq!(
        alice.refused("applyRetention", unknown),
        "session_not_found"
    );
    assert!(alice.db.dump() == before);
}

#[test]
fn a_deletion_reports_when_its_versions_expire() {
    let alice = ten_days_old();
    let deleted = |label: &str, key: &str, session: Option<&str>| {
        let item = json!({"sessionId": session, "label": label, "key": key});
        let deleted = alice.ok("deleteEntry", item);
        assert_eq!(deleted["versionsKept"], 1);
        deleted["versionsUntil"].clone()
    };
    assert_eq!(deleted("kb", "x", None), Value::Null);
    alice.ok(
        "configureAgent",
        json!({"retention": {"deletedDays": 30, "versionsDays": 90}}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "searchable", "retention": {"deletedDays": 7}}),
    );
    alice.ok(
        "updateSession",
        json!({"sessionId": "s", "retention": {"versionsDays": 2}}),
    );
    let now = alice.agent(&alice.db).host.now_ms();
    assert_eq!(deleted("kb", "y", None), now + 30 * DAY);
    assert_eq!(deleted("notes", "x", None), now + 7 * DAY);
    assert_eq!(deleted("kb", "x", Some("s")), now + 2 * DAY);
}

#[test]
fn the_versions_expire_at_the_reported_time() {
    let alice = ten_days_old();
    alice.ok(
        "configureAgent",
        json!({"retention": {"deletedDays": 30, "versionsDays": 90}}),
    );
    let deleted = alice.ok("deleteEntry", json!({"label": "kb", "key": "x"}));
    let until = deleted["versionsUntil"].as_i64().unwrap();
    let versions = || {
        let of = json!({"label": "kb", "key": "x"});
        let versions = alice.ok("getBlockVersions", of);
        versions["versions"].as_array().unwrap().len()
    };
    let run = || while alice.ok("applyRetention", json!({}))["complete"] != true {};
    alice
        .host
        .advance(until - alice.agent(&alice.db).host.now_ms() - DAY);
    run();
    assert!(versions() > 0);
    alice.host.advance(DAY + 1);
    run();
    assert_eq!(versions(), 0);
}
