//! Retention: what is deleted, what is preserved, and what it costs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::long::games;
use base::database::{Database as _, Row, SqlValue};
use base::host::Host as _;
use base::testing::Dice;
use conversation::tables::EVENTS_SEARCH;
use lifecycle::retention::{Pages, is_due, step};
use memory::purge::renew_tables;
use memory::tables::ENTRIES_SEARCH;
use store::retention_progress::RUN_EVERY_MS;
use store::schema::zeros::empty_free_pages;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// An agent with these rules and a session `s`.
fn with_rules(retention: Value) -> Alice {
    let alice = Alice::with_session();
    alice.ok("configureAgent", json!({"retention": retention}));
    alice
}

/// Runs until nothing is left to do; returns the number of steps.
fn run(alice: &Alice) -> usize {
    for steps in 1..10_000 {
        let applied = alice.ok("applyRetention", json!({}));
        if applied["complete"] == true {
            // As the object does after a step that deleted texts.
            renew_tables(&alice.db, &[EVENTS_SEARCH.name, ENTRIES_SEARCH.name], 0).unwrap();
            empty_free_pages(&alice.db).unwrap();
            return steps;
        }
    }
    panic!("retention does not end");
}

fn dry_run(alice: &Alice) -> Value {
    let found = alice.ok("applyRetention", json!({"dryRun": true}));
    assert_eq!(found["dryRun"], true);
    found["gone"].clone()
}

fn texts(alice: &Alice) -> Vec<String> {
    let events = alice.events();
    let text = |event: &Value| event["content"].as_str().unwrap().to_owned();
    events.iter().map(text).collect()
}

fn session(alice: &Alice) -> Value {
    alice.ok("getSession", json!({"sessionId": "s"}))
}

/// Days pass.
fn pass(alice: &Alice, days: i64) {
    alice.host.advance(days * DAY);
}

#[test]
fn an_agent_without_rules_writes_and_deletes_nothing() {
    let alice = Alice::with_session();
    alice.append_texts(&["a"]);
    pass(&alice, 10_000);
    let before = alice.db.dump();
    assert!(!is_due(&alice.agent(&alice.db).memory()).unwrap());
    let applied = alice.ok("applyRetention", json!({}));
    assert_eq!(applied["complete"], true);
    assert_eq!(applied["nextRunAt"], Value::Null);
    assert_eq!(
        applied["gone"]["events"],
        json!({"count": 0, "oldestAt": null})
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn events_expire_by_their_time_of_writing() {
    let alice = with_rules(json!({"eventsDays": 30}));
    let at = |created_at: i64, text: &str| json!({"action": "user_message", "content": text, "createdAt": created_at});
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [at(9_999_999_999_999, "old"), at(0, "old, too")]}),
    );
    pass(&alice, 1);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [at(0, "young")]}),
    );
    pass(&alice, 29);
    let found = dry_run(&alice);
    assert_eq!(found["events"]["count"], 2);
    assert_eq!(found["events"]["oldestAt"], 1_000_000);
    assert_eq!(alice.events().len(), 3);
    let deleted = alice.ok("applyRetention", json!({}))["gone"].clone();
    assert_eq!(deleted, found);
    run(&alice);
    assert_eq!(texts(&alice), ["young"]);
    // The next event follows the remaining one, and no seq is reused.
    alice.append_texts(&["next"]);
    let events = alice.events();
    assert_eq!(events[0]["parentId"], Value::Null);
    assert_eq!(events[1]["parentId"], events[0]["id"]);
    assert_eq!(events[1]["seq"], 4);
    pass(&alice, 40);
    run(&alice);
    assert!(texts(&alice).is_empty());
    alice.append_texts(&["again"]);
    assert_eq!(alice.events()[0]["seq"], 5);
}

#[test]
fn a_retention_run_does_not_count_as_session_activity() {
    let alice = with_rules(json!({"eventsDays": 5, "sessionsIdleDays": 10}));
    alice.append_texts(&["a"]);
    pass(&alice, 4);
    alice.append_texts(&["b"]);
    let active_at = session(&alice)["updatedAt"].clone();
    pass(&alice, 4);
    run(&alice);
    assert_eq!(texts(&alice), ["b"]);
    assert_eq!(session(&alice)["updatedAt"], active_at);
    pass(&alice, 5);
    run(&alice);
    assert!(texts(&alice).is_empty());
    assert_eq!(session(&alice)["updatedAt"], active_at);
    pass(&alice, 1);
    run(&alice);
    assert_eq!(session(&alice), Value::Null);
}

#[test]
fn a_message_expires_as_a_whole_with_its_calls_and_results() {
    let alice = with_rules(json!({"eventsDays": 30}));
    alice.append_texts(&["?"]);
    let call = |id: &str| json!({"id": id, "name": "t", "arguments": {}});
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_call_request", "toolCalls": [call("1"), call("2")]},
            {"action": "tool_result", "toolCallId": "1", "toolName": "t", "content": "one"},
        ]}),
    );
    pass(&alice, 10);
    // The second result is ten days younger, and a branch starts in between.
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_result", "toolCallId": "2", "toolName": "t", "content": "two"},
        ]}),
    );
    pass(&alice, 25);
    assert_eq!(dry_run(&alice)["events"]["count"], 1);
    run(&alice);
    assert_eq!(texts(&alice), ["", "one", "two"]);
    pass(&alice, 5);
    run(&alice);
    assert!(texts(&alice).is_empty());
}

#[test]
fn a_young_branch_is_reattached_to_the_remaining_events() {
    let alice = with_rules(json!({"eventsDays": 30}));
    let ids = alice.append_texts(&["a", "b", "c"]);
    pass(&alice, 10);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": ids[1], "events": [
            {"action": "user_message", "content": "beside c"}, {"action": "user_message", "content": "below"},
        ]}),
    );
    pass(&alice, 25);
    run(&alice);
    let events = alice.events();
    assert_eq!(texts(&alice), ["beside c", "below"]);
    assert_eq!(events[0]["parentId"], Value::Null);
    assert_eq!(events[1]["parentId"], events[0]["id"]);
    let path = alice.ok("getPathLength", json!({"sessionId": "s"}));
    assert_eq!(path["length"], 2);
}

#[test]
fn a_summary_expires_with_its_first_covered_event() {
    let alice = with_rules(json!({"eventsDays": 30}));
    let ids = alice.append_texts(&["a", "b"]);
    pass(&alice, 10);
    let later = alice.append_texts(&["c", "d"]);
    for (from, to, summary) in [(&ids[0], &later[0], "of a"), (&later[0], &later[1], "of c")] {
        alice.ok(
            "addCompaction",
            json!({"sessionId": "s", "fromId": from, "toId": to, "summary": summary}),
        );
    }
    pass(&alice, 25);
    assert_eq!(dry_run(&alice)["summaries"]["count"], 1);
    run(&alice);
    let left = alice.ok("getCompactions", json!({"sessionId": "s"}));
    let left = left["compactions"]
        .as_array()
        .unwrap_or_else(|| left.as_array().unwrap());
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["summary"], "of c");
    assert!(!alice.db.dump().contains("of a"));
}

/// The event on the other branch has a `seq` between the ends of the summary.
#[test]
fn a_summary_does_not_expire_with_another_branchs_event() {
    let alice = with_rules(json!({"eventsDays": 30}));
    let root = alice.append_texts(&["root"]).remove(0);
    let append = |parent: &str, mut event: Value| {
        event["parentId"] = json!(parent);
        let appended = alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
        crate::ids(&appended["events"]).remove(0)
    };
    let call = json!({"id": "1", "name": "t", "arguments": {}});
    let call = append(
        &root,
        json!({"action": "tool_call_request", "toolCalls": [call]}),
    );
    append(
        &root,
        json!({"action": "user_message", "content": "beside"}),
    );
    pass(&alice, 10);
    // The message continues, so its call stays.
    let result =
        json!({"action": "tool_result", "toolCallId": "1", "toolName": "t", "content": "one"});
    let result = append(&call, result);
    let summary = json!({"sessionId": "s", "fromId": call, "toId": result, "summary": "in short"});
    alice.ok("addCompaction", summary);
    pass(&alice, 25);
    let expected = dry_run(&alice);
    assert_eq!(expected["events"]["count"], 2, "{expected}");
    assert_eq!(expected["summaries"]["count"], 0, "{expected}");
    assert_eq!(run_and_count(&alice), expected);
    let left = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(left["compactions"][0]["summary"], "in short", "{left}");
    alice.assert_consistent("retention");
}

#[test]
fn a_change_feed_reader_converges_on_the_remaining_events() {
    let alice = with_rules(json!({"eventsDays": 30}));
    alice.append_texts(&["a", "b"]);
    let feed = |since: &Value| {
        alice.ok(
            "getChanges",
            json!({"sessionId": "s", "since": since, "limit": 1000}),
        )
    };
    let before = feed(&json!(0))["cursor"].clone();
    pass(&alice, 10);
    alice.append_texts(&["c"]);
    pass(&alice, 25);
    run(&alice);
    let after = feed(&before);
    assert_eq!(after["changes"][0]["type"], "clear");
    let appended: Vec<&Value> = after["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["type"] == "append")
        .collect();
    assert_eq!(appended.len(), 1);
    assert_eq!(appended[0]["id"], alice.events()[0]["id"]);
    // The new cursor is valid, and nothing is repeated.
    assert_eq!(feed(&after["cursor"])["changes"], json!([]));
    alice.append_texts(&["d"]);
    assert_eq!(
        feed(&after["cursor"])["changes"].as_array().unwrap().len(),
        1
    );
    pass(&alice, 60);
    run(&alice);
    let ended = feed(&after["cursor"]);
    assert_eq!(
        ended["changes"].as_array().unwrap().last().unwrap()["type"],
        "clear"
    );
}

#[test]
fn an_idle_session_expires_unless_pinned() {
    let alice = with_rules(json!({"sessionsIdleDays": 30, "eventsDays": 10}));
    alice.ok("createSession", json!({"id": "pinned", "pinned": true}));
    alice.ok(
        "createSession",
        json!({"id": "own", "retention": {"sessionsIdleDays": null}}),
    );
    for id in ["s", "pinned", "own"] {
        alice.ok(
            "appendEvents",
            json!({"sessionId": id, "events": [{"action": "user_message", "content": id}]}),
        );
    }
    pass(&alice, 30);
    alice.ok("createSession", json!({"id": "young"}));
    assert_eq!(dry_run(&alice)["sessions"]["count"], 1);
    run(&alice);
    let left = |id: &str| alice.ok("getSession", json!({"sessionId": id}));
    assert_eq!(left("s"), Value::Null);
    assert_eq!(left("pinned")["pinned"], true);
    assert_eq!(left("own")["retention"], json!({"sessionsIdleDays": null}));
    assert_eq!(left("young").get("pinned"), None);
    let events = |id: &str| alice.ok("loadEvents", json!({"sessionId": id}));
    assert_eq!(events("pinned").as_array().unwrap().len(), 1);
    assert_eq!(events("own").as_array().unwrap().len(), 0);
    // A pin can be removed.
    alice.ok(
        "updateSession",
        json!({"sessionId": "pinned", "pinned": false}),
    );
    pass(&alice, 40);
    run(&alice);
    assert_eq!(left("pinned"), Value::Null);
}

#[test]
fn a_session_can_have_its_own_rules_without_reading_others() {
    let alice = Alice::with_session();
    alice.append_texts(&["neighbour"]);
    alice.ok(
        "createSession",
        json!({"id": "t", "retention": {"eventsDays": 1}}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [{"action": "user_message", "content": "x"}]}),
    );
    pass(&alice, 2);
    // A corrupt row of another session is never read.
    alice
        .db
        .run(
            "UPDATE cf_agents_events SET written_at = 'damaged' WHERE session_id = 's'",
            &[],
        )
        .unwrap();
    run(&alice);
    assert_eq!(alice.events().len(), 1);
    let left = alice.ok("loadEvents", json!({"sessionId": "t"}));
    assert_eq!(left, json!([]));
    // The rules are removed, and with them the state of retention.
    alice.ok(
        "updateSession",
        json!({"sessionId": "t", "retention": null}),
    );
    run(&alice);
    assert!(!is_due(&alice.agent(&alice.db).memory()).unwrap());
    pass(&alice, 9);
    assert!(!is_due(&alice.agent(&alice.db).memory()).unwrap());
}

#[test]
fn a_corrupt_session_is_skipped() {
    let alice = with_rules(json!({"eventsDays": 1}));
    alice.append_texts(&["a"]);
    for id in ["t", "u"] {
        alice.ok("createSession", json!({"id": id}));
        alice.ok(
            "appendEvents",
            json!({"sessionId": id, "events": [{"action": "user_message", "content": "x"}]}),
        );
    }
    for id in ["s", "t"] {
        let sql = "UPDATE cf_agents_events SET written_at = 'damaged' WHERE session_id = ?1";
        alice.db.run(sql, &[SqlValue::from(id)]).unwrap();
    }
    pass(&alice, 2);
    run(&alice);
    assert_eq!(alice.ok("loadEvents", json!({"sessionId": "u"})), json!([]));
    let last = alice.ok("applyRetention", json!({"dryRun": true}))["lastRun"].clone();
    assert_eq!(last["skipped"], 2);
}

fn with_entries(retention: Value) -> Alice {
    let alice = with_rules(retention);
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    alice.ok("defineBlock", json!({"label": "notes", "kind": "writable"}));
    alice
}

fn set(alice: &Alice, key: &str, content: &str) {
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": key, "content": content}),
    );
}

#[test]
fn earlier_versions_expire_and_the_current_one_stays() {
    let alice = with_entries(json!({"versionsDays": 7}));
    for text in ["first", "second", "third"] {
        set(&alice, "k", text);
        alice.ok("setBlock", json!({"label": "notes", "content": text}));
        pass(&alice, 5);
    }
    // `first` was replaced 10 days ago, and `second` 5 days ago.
    let found = dry_run(&alice);
    assert_eq!(
        found["versions"],
        json!({"count": 2, "oldestAt": 1_000_000})
    );
    run(&alice);
    let versions = |body: Value| -> Vec<String> {
        let found = alice.ok("getBlockVersions", body);
        let text = |version: &Value| version["content"].as_str().unwrap().to_owned();
        found["versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect()
    };
    assert_eq!(versions(json!({"label": "notes"})), ["third", "second"]);
    assert_eq!(
        versions(json!({"label": "facts", "key": "k"})),
        ["third", "second"]
    );
    pass(&alice, 9);
    run(&alice);
    assert_eq!(versions(json!({"label": "notes"})), ["third"]);
    assert_eq!(versions(json!({"label": "facts", "key": "k"})), ["third"]);
    let dump = alice.db.dump();
    assert!(!dump.contains("first") && !dump.contains("second"));
}

#[test]
fn text_of_deleted_items_expires_after_its_days() {
    let alice = with_entries(json!({"deletedDays": 7}));
    set(&alice, "gone", "secret text");
    set(&alice, "back", "old text");
    pass(&alice, 1);
    for key in ["gone", "back"] {
        alice.ok("deleteEntry", json!({"label": "facts", "key": key}));
    }
    set(&alice, "back", "new text");
    pass(&alice, 6);
    run(&alice);
    assert!(alice.db.dump().contains("secret text"));
    pass(&alice, 1);
    assert_eq!(dry_run(&alice)["deleted"]["count"], 2);
    run(&alice);
    let dump = alice.db.dump();
    assert!(!dump.contains("secret text") && !dump.contains("old text"));
    assert!(dump.contains("new text"));
}

#[test]
fn old_entries_expire_with_their_versions() {
    let alice = with_entries(json!({"entriesDays": 30}));
    set(&alice, "old", "first words");
    set(&alice, "old", "second words");
    pass(&alice, 20);
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": "young", "content": "young words"}),
    );
    pass(&alice, 10);
    assert_eq!(dry_run(&alice)["entries"]["count"], 1);
    run(&alice);
    let left = alice.ok("listEntries", json!({"label": "facts"}));
    assert_eq!(left["entries"].as_array().unwrap().len(), 1);
    let dump = alice.db.dump();
    assert!(!dump.contains("first words") && !dump.contains("second words"));
    // The block counts what is left.
    let block = alice.ok("getBlock", json!({"label": "facts"}));
    assert!(block["content"].as_str().unwrap().contains('1'), "{block}");
    let found = alice.ok("searchContext", json!({"label": "facts", "query": "words"}));
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
}

#[test]
fn a_block_can_have_rules_in_the_agent_and_in_a_session() {
    let alice = Alice::with_session();
    let define = |label: &str, session: Option<&str>, retention: Value| {
        alice.ok(
            "defineBlock",
            json!({"label": label, "kind": "searchable", "sessionId": session, "retention": retention}),
        );
        alice.ok(
            "setEntry",
            json!({"label": label, "sessionId": session, "key": "k", "content": "text"}),
        );
    };
    define("short", None, json!({"entriesDays": 1}));
    define("long", None, Value::Null);
    define("mine", Some("s"), json!({"entriesDays": 1}));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "short"}))["retention"],
        json!({"entriesDays": 1})
    );
    assert_eq!(session(&alice).get("retention"), None);
    pass(&alice, 2);
    assert_eq!(dry_run(&alice)["entries"]["count"], 2);
    run(&alice);
    let count = |label: &str, session: Option<&str>| {
        let listed = alice.ok("listEntries", json!({"label": label, "sessionId": session}));
        listed["entries"].as_array().unwrap().len()
    };
    assert_eq!(count("short", None), 0);
    assert_eq!(count("long", None), 1);
    assert_eq!(count("mine", Some("s")), 0);
}

/// The steps of a run are separate transactions, so the pages of all of them are cleared after the
/// last one.
#[test]
fn the_last_step_of_a_run_that_deleted_clears_freed_pages() {
    let alice = with_rules(json!({"eventsDays": 5}));
    for _ in 0..8 {
        alice.append_texts(&["word"; 100]);
    }
    let run_step = |pages| step(&alice.agent(&alice.db).memory(), pages).unwrap();
    pass(&alice, 10);
    let mut steps = 0;
    loop {
        let step = run_step(Pages::ClearedAfter);
        assert_eq!(step.left.is_written, !step.has_more, "step {steps}");
        steps += 1;
        if !step.has_more {
            break;
        }
    }
    assert!(steps > 2, "{steps}");
    // There is nothing left to delete.
    pass(&alice, 2);
    let step = run_step(Pages::ClearedAfter);
    assert!(!step.left.is_written && !step.has_more);
    // A caller that has yet to clear the pages runs one more step, which deletes nothing.
    alice.append_texts(&["word"]);
    pass(&alice, 10);
    assert!(!run_step(Pages::NotCleared).left.is_written);
    let step = run_step(Pages::NotCleared);
    assert!(step.left.is_written && step.has_more);
    let step = run_step(Pages::Cleared);
    assert!(!step.left.is_written && !step.has_more);
}

#[test]
fn a_remote_block_has_no_rules_here() {
    let alice = Alice::with_session();
    let refused = alice.refused(
        "defineBlock",
        json!({"label": "theirs", "kind": "searchable", "source": {"agent": "bob"}, "retention": {"entriesDays": 1}}),
    );
    assert_eq!(refused, "invalid_request");
}

#[test]
fn a_run_starts_daily_and_when_rules_change() {
    let alice = with_rules(json!({"eventsDays": 30}));
    let memory = || alice.agent(&alice.db);
    assert!(is_due(&memory().memory()).unwrap());
    run(&alice);
    assert!(!is_due(&memory().memory()).unwrap());
    alice.host.advance(RUN_EVERY_MS - 1);
    assert!(!is_due(&memory().memory()).unwrap());
    alice.host.advance(1);
    assert!(is_due(&memory().memory()).unwrap());
    run(&alice);
    alice.ok("configureAgent", json!({"retention": {"eventsDays": 3}}));
    assert!(is_due(&memory().memory()).unwrap());
    // Removed rules leave no row.
    alice.ok("configureAgent", json!({"retention": null}));
    run(&alice);
    assert!(!is_due(&memory().memory()).unwrap());
    let sql = "SELECT 1 FROM cf_agents_config WHERE key = 'retention'";
    assert!(alice.db.rows(sql, &[]).unwrap().is_empty());
}

#[test]
fn deployed_rules_apply_where_the_agent_has_none() {
    let alice = Alice::with_session();
    let defaults = json!({"retention": {"eventsDays": 2}});
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert("AGENT_DEFAULTS".to_owned(), defaults.to_string());
    drop(settings);
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["retention"], json!({"eventsDays": 2}));
    assert_eq!(config["origins"]["retention"], "defaults");
    alice.append_texts(&["a"]);
    pass(&alice, 3);
    assert!(is_due(&alice.agent(&alice.db).memory()).unwrap());
    run(&alice);
    assert!(texts(&alice).is_empty());
    alice.ok("configureAgent", json!({"retention": {}}));
    alice.append_texts(&["b"]);
    pass(&alice, 3);
    run(&alice);
    assert_eq!(texts(&alice), ["b"]);
}

#[test]
fn a_long_history_expires_in_bounded_steps() {
    let alice = with_rules(json!({"eventsDays": 1}));
    for _ in 0..20 {
        let events: Vec<Value> = (0..1000)
            .map(|n| json!({"action": "user_message", "content": format!("text {n}")}))
            .collect();
        alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    }
    pass(&alice, 2);
    alice.append_texts(&["young"]);
    let found = alice.ok("applyRetention", json!({"dryRun": true}));
    assert_eq!(found["complete"], false);
    let mut steps = 0;
    loop {
        let outcome = step(&alice.agent(&alice.db).memory(), Pages::ClearedAfter).unwrap();
        assert!(outcome.counts.events.count <= 500);
        steps += 1;
        if !outcome.has_more {
            break;
        }
    }
    assert!((40..=45).contains(&steps), "{steps}");
    assert_eq!(texts(&alice), ["young"]);
    let last = alice.ok("applyRetention", json!({"dryRun": true}))["lastRun"].clone();
    assert_eq!(last["gone"]["events"]["count"], 20_000);
}

#[test]
fn a_write_stops_the_stepwise_expiry_of_an_idle_session() {
    let alice = with_rules(json!({"sessionsIdleDays": 10}));
    let events: Vec<Value> = (0..1000)
        .map(|n| json!({"action": "user_message", "content": format!("text {n}")}))
        .collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [{"action": "user_message", "content": "last"}]}),
    );
    pass(&alice, 10);
    step(&alice.agent(&alice.db).memory(), Pages::ClearedAfter).unwrap();
    assert_eq!(alice.events().len(), 501);
    alice.append_texts(&["still here"]);
    run(&alice);
    assert_eq!(alice.events().len(), 502);
    pass(&alice, 10);
    run(&alice);
    assert_eq!(session(&alice), Value::Null);
    assert!(!alice.db.dump().contains("still here"));
}

/// Runs retention, and returns the counts that it reports.
fn run_and_count(alice: &Alice) -> Value {
    run(alice);
    let last = alice.ok("applyRetention", json!({"dryRun": true}));
    last["lastRun"]["gone"].clone()
}

#[test]
fn a_dry_run_reports_what_the_run_deletes() {
    // The first message of the second summary extends beyond the days, so it stays whole.
    let alice = with_rules(json!({"eventsDays": 30}));
    let old = alice.append_texts(&["a"]);
    let call = json!({"id": "1", "name": "t", "arguments": {}});
    let append = |events: Value| {
        let events = json!({"sessionId": "s", "events": events});
        alice.ok("appendEvents", events)["leafId"].clone()
    };
    let call_id = append(json!([{"action": "tool_call_request", "toolCalls": [call]}]));
    pass(&alice, 10);
    let ended = append(json!([
        {"action": "tool_result", "toolCallId": "1", "toolName": "t", "content": "one"}
    ]));
    for (from, to) in [(json!(old[0]), json!(old[0])), (call_id, ended)] {
        let summary = json!({"sessionId": "s", "fromId": from, "toId": to, "summary": "in short"});
        alice.ok("addCompaction", summary);
    }
    pass(&alice, 25);
    let expected = dry_run(&alice);
    assert_eq!(expected["summaries"]["count"], 1, "{expected}");
    assert_eq!(run_and_count(&alice), expected);

    // A long session and its summaries are deleted in several steps.
    let alice = with_rules(json!({"sessionsIdleDays": 10}));
    let texts: Vec<String> = (0..900).map(|n| format!("text {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let ids = alice.append_texts(&texts);
    let summary =
        json!({"sessionId": "s", "fromId": ids[0], "toId": ids[9], "summary": "in short"});
    alice.ok("addCompaction", summary);
    pass(&alice, 10);
    let expected = dry_run(&alice);
    assert_eq!(expected["sessions"]["count"], 1, "{expected}");
    assert_eq!(run_and_count(&alice), expected);

    // A deletion followed by a later text expires as a version, and counts once.
    let alice = with_entries(json!({"versionsDays": 7, "deletedDays": 7}));
    set(&alice, "k", "one");
    for text in ["two", "three"] {
        pass(&alice, 1);
        alice.ok("deleteEntry", json!({"label": "facts", "key": "k"}));
        pass(&alice, 1);
        set(&alice, "k", text);
    }
    pass(&alice, 20);
    let expected = dry_run(&alice);
    assert_eq!(expected["deleted"]["count"], 1, "{expected}");
    assert_eq!(run_and_count(&alice), expected);
}

#[test]
fn forks_and_exports_keep_ages_and_rules() {
    let alice = Alice::with_session();
    alice.ok(
        "updateSession",
        json!({"sessionId": "s", "retention": {"eventsDays": 10}, "pinned": true}),
    );
    alice.append_texts(&["a"]);
    pass(&alice, 9);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(fork["retention"], json!({"eventsDays": 10}));
    assert_eq!(fork.get("pinned"), None);
    pass(&alice, 1);
    run(&alice);
    let left = alice.ok("loadEvents", json!({"sessionId": fork["id"]}));
    assert_eq!(left, json!([]));
    assert_eq!(texts(&alice), ["a"], "the session is pinned");
}

#[test]
fn an_old_answer_expires_even_if_a_younger_one_follows() {
    let answer = |text: &str| json!({"action": "agent_message", "content": text});
    let call = |ids: &[&str]| {
        let call = |id: &&str| json!({"id": id, "name": "t", "arguments": {}});
        let calls: Vec<Value> = ids.iter().map(call).collect();
        json!({"action": "tool_call_request", "toolCalls": calls, "content": ids.join(" ")})
    };
    let result = |id: &str| json!({"action": "tool_result", "toolCallId": id, "toolName": "t", "content": format!("of {id}")});
    // Old messages, young messages, and the remaining ones.
    let table = [
        (vec![answer("old")], vec![answer("young")], vec!["young"]),
        (
            vec![call(&["1"]), result("1"), answer("old")],
            vec![call(&["2"]), result("2")],
            vec!["2", "of 2"],
        ),
        // An unfinished answer is kept whole.
        (
            vec![answer("old"), call(&["1"]), result("1"), call(&["2"])],
            vec![result("2"), answer("young")],
            vec!["1", "of 1", "2", "of 2", "young"],
        ),
        // A text between a call and its result doesn't end the answer.
        (
            vec![call(&["1", "2"]), result("1"), answer("meanwhile")],
            vec![answer("young"), result("2")],
            vec!["1 2", "of 1", "meanwhile", "young", "of 2"],
        ),
    ];
    for (old, young, left) in table {
        let alice = with_rules(json!({"eventsDays": 30}));
        let append = |events: &[Value]| {
            alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        };
        append(&old);
        pass(&alice, 10);
        append(&young);
        pass(&alice, 25);
        let expected = dry_run(&alice);
        assert_eq!(run_and_count(&alice), expected);
        assert_eq!(texts(&alice), left);
    }
}

#[test]
fn a_dry_run_matches_the_run_for_random_sessions() {
    // Within a page of a step, beyond one, and beyond two.
    for (seed, events) in (1..).zip([40, 90, 180, 520, 560, 640, 900, 1_100, 1_300]) {
        for game in 0..games(1, 3) {
            play(seed * 10 + game, events);
        }
    }
}

/// Random events in two sessions over some weeks, one of them pinned at times.
fn play(seed: u64, events: usize) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let alice = with_rules(json!({"eventsDays": 10}));
    alice.ok(
        "createSession",
        json!({"id": "t", "pinned": dice.roll(3) == 0}),
    );
    let mut stored: Vec<String> = Vec::new();
    // Calls that have no result yet, each with its event.
    let mut open: Vec<(String, String)> = Vec::new();
    let mut left = events;
    while left > 0 {
        if dice.roll(events / 4) == 0 {
            pass(&alice, 1 + dice.roll(4) as i64);
        }
        let recent = |dice: &mut Dice| {
            let far = 1 + dice.roll(30);
            let back = 1 + dice.roll(stored.len().min(far));
            stored[stored.len() - back].clone()
        };
        let text = |action: &str| json!({"action": action, "content": "text"});
        let name = format!("c{left}");
        let call = json!({"action": "tool_call_request", "toolCalls": [{"id": name, "name": "t", "arguments": {}}]});
        let result = |name: &str| json!({"action": "tool_result", "toolCallId": name, "toolName": "t", "content": "r"});
        let mut body = json!({"sessionId": "s"});
        match (dice.roll(12), stored.is_empty()) {
            (0..=3, _) | (_, true) => body["events"] = json!([text("user_message")]),
            (4, _) => body["events"] = json!([text("agent_message")]),
            (5, _) => body["events"] = json!([call, result(&name), text("agent_message")]),
            (6, _) => body["events"] = json!([call]),
            (7, _) if !open.is_empty() => {
                let (event, name) = open.swap_remove(dice.roll(open.len()));
                body["parentId"] = json!(event);
                body["events"] = json!([result(&name)]);
            }
            (8, _) => {
                body["parentId"] = json!(recent(&mut dice));
                body["events"] = json!([text(["user_message", "agent_message"][dice.roll(2)])]);
            }
            (9, _) => {
                let ends = [recent(&mut dice), recent(&mut dice)];
                let cover =
                    json!({"sessionId": "s", "fromId": ends[0], "toId": ends[1], "summary": "sum"});
                // They may lie on two branches.
                drop(alice.call("addCompaction", cover));
                continue;
            }
            (10, _) => {
                body["sessionId"] = json!("t");
                body["events"] = json!([text("user_message")]);
                alice.ok("appendEvents", body);
                continue;
            }
            _ => body["events"] = json!([text("agent_message"), text("user_message")]),
        }
        let appended = crate::ids(&alice.ok("appendEvents", body.clone())["events"]);
        if body["events"][0]["toolCalls"].is_array() && appended.len() == 1 {
            open.push((appended[0].clone(), name));
        }
        left = left.saturating_sub(appended.len());
        stored.extend(appended);
    }
    let mut days = 0;
    while days < 30 {
        let passed = 1 + dice.roll(9) as i64;
        pass(&alice, passed);
        days += passed;
        let expected = dry_run(&alice);
        let case = format!("seed {seed}, {events} events, day {days}");
        assert_eq!(run_and_count(&alice), expected, "{case}");
        assert_whole_answers(&alice, alice.host.now_ms() - 10 * DAY, &case);
    }
    alice.assert_consistent(&format!("seed {seed}"));
}

/// No event outlives its days unless its answer has a younger one, and no result outlives its
/// call.
fn assert_whole_answers(alice: &Alice, cutoff: i64, case: &str) {
    let sql = "SELECT seq, parent_seq, written_at, action
                 FROM cf_agents_events
                WHERE session_id = 's'
                ORDER BY seq";
    let rows = alice.db.rows(sql, &[]).unwrap();
    let by_seq: BTreeMap<i64, &Row> = rows
        .iter()
        .map(|row| (row.integer(0).unwrap(), row))
        .collect();
    let action = |row: &Row| row.text(3).unwrap().to_owned();
    let is_agents = |row: &Row| action(row) != "user_message";
    let mut needed = BTreeSet::new();
    for row in &rows {
        let mut above = row;
        let mut has_call = false;
        while is_agents(above) {
            if row.integer(2).unwrap() > cutoff {
                needed.insert(above.integer(0).unwrap());
            }
            has_call |= action(above) == "tool_call_request";
            match by_seq.get(&above.integer(1).unwrap()) {
                Some(parent) => above = parent,
                None => break,
            }
        }
        assert!(has_call || action(row) != "tool_result", "{case}: {row:?}");
        let is_old = row.integer(2).unwrap() <= cutoff;
        assert!(!is_old || is_agents(row), "{case}: {row:?}");
    }
    for row in &rows {
        let is_old = row.integer(2).unwrap() <= cutoff;
        assert!(
            !is_old || needed.contains(&row.integer(0).unwrap()),
            "{case}: {row:?}"
        );
    }
}
