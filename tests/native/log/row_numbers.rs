//! Imported events get new row numbers, whatever the file contains.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::examples::populated;
use crate::shared::files::small;
use base::database::Database;
use base::numbers::{MAX_FILE_SEQ, MAX_SEQ, MAX_SESSION_NUMBER};

/// Imports a session of three messages, whose next event gets the number `next`.
fn import_up_to(alice: &Alice, id: &str, next: i64) {
    alice.import(id, &small().export("s").unwrap()).unwrap();
    // A file may not contain it, but an earlier build accepted such files.
    let sql = "UPDATE cf_agents_sessions SET seq_floor = ?2 WHERE id = ?1";
    alice.db.run(sql, &[id.into(), (next - 1).into()]).unwrap();
}

#[test]
fn a_session_at_its_last_seq_refuses_events_and_affects_no_other() {
    for is_indexed_first in [false, true] {
        let alice = Alice::default();
        if is_indexed_first {
            alice.search("anything");
        }
        // One session has an odd number and the other an even one: an overflow would
        // reach different rows.
        for id in ["s", "t"] {
            import_up_to(&alice, id, MAX_SEQ + 1);
            alice.ok("createSession", json!({"id": format!("after-{id}")}));
            let event = json!({"action": "user_message", "content": format!("the parrot of {id}")});
            let body = json!({"sessionId": format!("after-{id}"), "events": [event, event, event]});
            alice.ok("appendEvents", body);
        }
        for id in ["s", "t"] {
            let event = json!({"action": "user_message", "content": "overrun"});
            let body = json!({"sessionId": id, "events": [event]});
            let error = alice.call("appendEvents", body).unwrap_err();
            assert_eq!(
                (error.code.name(), &error.details()["limit"]),
                ("payload_too_large", &json!(MAX_SEQ))
            );
            let message = json!({"role": "user", "parts": [{"type": "text", "text": "x"}]});
            let body = json!({"sessionId": id, "message": message});
            assert_eq!(alice.refused("appendMessage", body), "payload_too_large");
        }
        let found = alice.search("parrot");
        assert_eq!(found.len(), 6);
        assert!(
            found
                .iter()
                .all(|hit| hit["snippet"].as_str().unwrap().contains("parrot"))
        );
        alice.ok("deleteSession", json!({"sessionId": "s"}));
        assert_eq!(alice.search("parrot").len(), 6);
        // As the error suggests, a fork of the session accepts more events.
        let fork = alice.ok("forkSession", json!({"sessionId": "t"}));
        let event = json!({"action": "user_message", "content": "on"});
        let body = json!({"sessionId": fork["id"], "events": [event]});
        assert_eq!(alice.ok("appendEvents", body)["events"][0]["seq"], 4);
    }
}

#[test]
fn an_append_that_would_overflow_midway_writes_nothing() {
    let alice = Alice::default();
    import_up_to(&alice, "s", MAX_SEQ);
    let event = json!({"action": "user_message", "content": "x"});
    let before = alice.db.dump();
    let two = json!({"sessionId": "s", "events": [event, event]});
    assert_eq!(alice.refused("appendEvents", two), "payload_too_large");
    assert_eq!(alice.db.dump(), before);
    let one = json!({"sessionId": "s", "events": [event]});
    assert_eq!(alice.ok("appendEvents", one)["events"][0]["seq"], MAX_SEQ);
}

/// The numbers of a JSON value by their paths. A number of text, metadata or a tool's
/// arguments is the caller's own.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                if !["metadata", "message", "arguments"].contains(&name.as_str()) {
                    numbers(value, &format!("{path}/{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                numbers(item, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Every number in a file with lines of every type, set to an extreme. Either the number is refused
/// and nothing is written, or the imported session accepts more events and its export can be
/// imported again.
#[test]
fn every_number_in_a_file_is_bounded() {
    let alice = populated();
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": 5, "outputTokens": 4, "cachedInputTokens": 3, "cost": 1.5}),
    );
    alice.ok("setLeaf", json!({"sessionId": "s", "id": "b1"}));
    alice.ok(
        "setEntry",
        json!({"sessionId": "s", "label": "kb", "key": "k", "content": "d", "validFrom": 5, "validUntil": 4_000_000}),
    );
    let file = alice.export("s").unwrap();
    let lines: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut cells = 0;
    let mut refused = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let mut paths = Vec::new();
        numbers(line, "", &mut paths);
        for path in paths {
            for extreme in [
                "-1",
                "0",
                "2147483647",
                "2147483648",
                "4294967294",
                "4294967295",
                "4294967296",
                "8640000000000001",
                "9007199254740991",
                "9007199254740992",
                "18446744073709551616",
                "1e24",
                "1e308",
                "1e999",
                "0.5",
            ] {
                cells += 1;
                let mut changed = line.clone();
                // A number represents itself in the text.
                *changed.pointer_mut(&path).unwrap() = json!("THE NUMBER");
                let changed = changed.to_string().replacen("\"THE NUMBER\"", extreme, 1);
                let mut all: Vec<String> = lines.iter().map(Value::to_string).collect();
                all[at] = changed;
                let case = format!("{} {path} = {extreme}", line["type"]);
                let bob = Alice::default();
                bob.ok("createSession", json!({"id": "other"}));
                let before = bob.db.dump();
                match bob.import("s", &(all.join("\n") + "\n")) {
                    Err(error) => {
                        assert_eq!(error.code.name(), "invalid_request", "{case}");
                        assert!(error.details()["field"].is_string(), "{case} {error:?}");
                        *refused
                            .entry(format!("{} {path}", line["type"]))
                            .or_insert(0) += 1;
                        // The rows that an unfinished import has staged go when it ends.
                        assert_eq!(bob.db.dump(), before, "{case}");
                    }
                    Ok(_) => {
                        bob.ok(
                            "addUsage",
                            json!({"sessionId": "s", "inputTokens": 5, "cost": 1e15}),
                        );
                        let event = json!({"action": "user_message", "content": "more"});
                        let body = json!({"sessionId": "s", "events": [event]});
                        let seq = bob.ok("appendEvents", body)["events"][0]["seq"]
                            .as_i64()
                            .unwrap();
                        assert!(seq <= MAX_FILE_SEQ + 1, "{case}");
                        let body = json!({"sessionId": "s", "label": "memory", "content": "more"});
                        bob.ok("setBlock", body);
                        let body =
                            json!({"sessionId": "s", "label": "kb", "key": "k", "content": "more"});
                        bob.ok("setEntry", body);
                        bob.ok("getChanges", json!({"sessionId": "s"}));
                        bob.ok("listSessions", json!({}));
                        // A number at its limit exceeds the range that a file allows.
                        let at_bounds = ["2147483647", "4294967295", "9007199254740991", "1e24"];
                        if !at_bounds.contains(&extreme) {
                            let again = bob.export("s").unwrap();
                            Alice::default().import("s", &again).unwrap();
                        }
                    }
                }
                bob.call("deleteSession", json!({"sessionId": "s"}))
                    .unwrap();
                // The next session's feed starts as usual.
                bob.ok("createSession", json!({"id": "next"}));
                let event = json!({"action": "user_message", "content": "x"});
                bob.ok(
                    "appendEvents",
                    json!({"sessionId": "next", "events": [event]}),
                );
                let answer = bob.ok("getChanges", json!({"sessionId": "next"}));
                assert_eq!(answer["cursor"], 1 << 20, "{case}");
            }
        }
    }
    // Each kind of number has a bound.
    let kinds: BTreeSet<&str> = refused.keys().map(String::as_str).collect();
    assert!(cells > 500 && kinds.len() > 20, "{cells} cells, {kinds:?}");
}

#[test]
fn a_deleted_sessions_number_is_reused_once_all_are_taken() {
    let alice = Alice::with_session();
    let sql = "UPDATE cf_agents_sessions SET number = ?1";
    alice.db.run(sql, &[MAX_SESSION_NUMBER.into()]).unwrap();
    alice.search("anything");
    let append = |id: &str, text: &str| {
        let event = json!({"action": "user_message", "content": text});
        alice.ok("appendEvents", json!({"sessionId": id, "events": [event]}));
    };
    alice.ok("createSession", json!({"id": "t"}));
    append("t", "the parrot of t");
    let fork = alice.ok("forkSession", json!({"sessionId": "t"}));
    alice.import("u", &small().export("s").unwrap()).unwrap();
    append("u", "the parrot of u");
    alice.ok("deleteSession", json!({"sessionId": "t"}));
    alice.ok("createSession", json!({"id": "t"}));
    append("t", "the parrot again");
    let numbers = alice
        .db
        .rows("SELECT number FROM cf_agents_sessions ORDER BY number", &[]);
    let numbers: Vec<i64> = numbers
        .unwrap()
        .iter()
        .map(|row| row.integer(0).unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, MAX_SESSION_NUMBER]);
    let found: BTreeSet<String> = alice
        .search("parrot")
        .iter()
        .map(|hit| hit["sessionId"].as_str().unwrap().to_owned())
        .collect();
    let fork = fork["id"].as_str().unwrap().to_owned();
    assert_eq!(found, ["t", "u", &fork].map(str::to_owned).into());
}

#[test]
fn an_agent_with_all_numbers_taken_refuses_new_sessions() {
    let alice = Alice::with_session();
    let sql = "WITH RECURSIVE numbers (number) AS
                 (SELECT 2 UNION ALL SELECT number + 1 FROM numbers WHERE number < ?1)
               INSERT INTO cf_agents_sessions (id, number, agent_id, created_at, updated_at)
               SELECT 'n' || number, number, 'alice', 1, 1 FROM numbers";
    alice.db.run(sql, &[MAX_SESSION_NUMBER.into()]).unwrap();
    assert_eq!(
        alice.refused("createSession", json!({})),
        "payload_too_large"
    );
    let file = small().export("s").unwrap();
    let error = alice.import("t", &file).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    let fork = json!({"sessionId": "s"});
    assert_eq!(alice.refused("forkSession", fork), "payload_too_large");
    alice.ok("deleteSession", json!({"sessionId": "n77"}));
    alice.ok("createSession", json!({"id": "t"}));
    assert_eq!(
        alice.refused("createSession", json!({})),
        "payload_too_large"
    );
}

#[test]
fn an_overflowed_seq_of_an_earlier_build_is_not_indexed() {
    let alice = Alice::with_session();
    alice.append_texts(&["the parrot"]);
    alice.ok("createSession", json!({"id": "t"}));
    let event = json!({"action": "user_message", "content": "a neighbour's"});
    alice.ok("appendEvents", json!({"sessionId": "t", "events": [event]}));
    // With this number, the row of session 1 would be the first row of session 2.
    let sql = "UPDATE cf_agents_events SET seq = ?1, id_indexed = 1 WHERE session_id = 's'";
    alice.db.run(sql, &[(MAX_SEQ + 2).into()]).unwrap();
    assert_eq!(alice.search("parrot").len(), 0);
    assert_eq!(alice.search("neighbour").len(), 1);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.search("neighbour").len(), 1);
}
