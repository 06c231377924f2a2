//! Appending, loading and deleting events.

use serde_json::{Value, json};

use crate::{Alice, ids};
use api::dispatch::dispatch;
use api::jobs;
use base::background::JobKind;
use base::database::{Database, SqlValue};
use base::testing::{Failing, wait_for};
use conversation::log::event::Event;
use conversation::log::slices::MAX_EVENT_BYTES;

fn user(text: &str) -> Value {
    json!({"action": "user_message", "content": text})
}

fn contents(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["content"].as_str().unwrap())
        .collect()
}

/// The `seq` of every event and of its parent.
fn tree(alice: &Alice) -> Vec<(i64, i64)> {
    let rows = alice
        .db
        .rows(
            "SELECT seq, parent_seq, parent_id, is_branch FROM cf_agents_events ORDER BY seq",
            &[],
        )
        .unwrap();
    let events = alice.events();
    let mut before = 0;
    rows.iter()
        .zip(&events)
        .map(|(row, event)| {
            let (seq, parent) = (row.integer(0).unwrap(), row.integer(1).unwrap());
            // An event's `parentId` is the id of the row that `parent_seq` names.
            let parent_id = events
                .iter()
                .find(|other| other["seq"] == parent)
                .map_or(Value::Null, |parent| parent["id"].clone());
            assert_eq!(event["parentId"], parent_id);
            // A row that is not a branch directly follows its parent.
            assert!(
                row.integer(3).unwrap() == 1 || parent == before,
                "seq {seq}"
            );
            before = seq;
            (seq, parent)
        })
        .collect()
}

/// The rows of a session as they are stored, without the random part of an id.
fn stored(alice: &Alice, session: &str) -> Vec<Vec<SqlValue>> {
    let sql = "
        SELECT seq, id_indexed, iif(id_indexed, id, substr(id, 1, instr(id, '-'))), parent_seq,
               (SELECT p.seq FROM cf_agents_events AS p WHERE p.session_id = e.session_id AND p.id = e.parent_id),
               is_branch, action, content, tool, metadata, message, message_dated, sliced_bytes,
               created_at, written_at, media, note, ends_turn, typeof(seq), typeof(parent_seq)
          FROM cf_agents_events AS e
         WHERE session_id = ?1
         ORDER BY seq";
    let rows = alice.db.rows(sql, &[session.into()]).unwrap();
    rows.into_iter().map(|row| row.0).collect()
}

#[test]
fn batched_and_single_appends_store_the_same_events() {
    let texts = [
        "plain",
        "",
        "a\u{0}b\u{1f}\u{2028}\u{1f600}\"\\\n",
        "O'Hara?1",
    ];
    let plain = |at: usize| json!({"action": (["user_message", "agent_message"][at % 2]), "content": texts[at % 4]});
    let with = |at: usize, more: Value| {
        let mut event = plain(at);
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    let call = |at: usize| json!({"action": "tool_call_request", "toolCalls": [{"id": format!("c{at}"), "name": "echo", "arguments": {"n": at}}]});
    let all: [&dyn Fn(usize) -> Value; 8] = [
        &plain,
        &|at| if at % 3 == 1 { call(at) } else { plain(at) },
        &|at| {
            if at == 1 {
                with(at, json!({"metadata": {"k": [at, null]}}))
            } else {
                plain(at)
            }
        },
        &|at| {
            if at == 2 {
                call(at)
            } else {
                with(at, json!({"metadata": {"k": "x"}}))
            }
        },
        &|at| with(at, json!({"id": format!("own-{at}")})),
        &|at| {
            if at == 1 {
                with(at, json!({"id": "own"}))
            } else {
                plain(at)
            }
        },
        &|at| with(at, json!({"createdAt": 7 + at / 2})),
        &|at| {
            if at == 1 {
                with(at, json!({"parentId": null}))
            } else {
                plain(at)
            }
        },
    ];
    for (kind, event) in all.iter().enumerate() {
        for count in [2, 3, 10, 15, 16, 17, 40] {
            let events: Vec<Value> = (0..count).map(event).collect();
            let alice = Alice::default();
            for session in ["together", "apart"] {
                alice.ok("createSession", json!({"id": session}));
                alice.ok(
                    "appendEvents",
                    json!({"sessionId": session, "events": [user("before")]}),
                );
            }
            alice.ok(
                "appendEvents",
                json!({"sessionId": "together", "events": events}),
            );
            for event in &events {
                alice.ok(
                    "appendEvents",
                    json!({"sessionId": "apart", "events": [event]}),
                );
            }
            let separately = stored(&alice, "apart");
            assert_eq!(
                stored(&alice, "together"),
                separately,
                "kind {kind}, {count} events"
            );
            assert_eq!(separately.len(), count + 1);
        }
    }
}

#[test]
fn events_read_back_as_sent() {
    let alice = Alice::with_session();
    let calls =
        json!([{"id": "c1", "name": "echo", "arguments": {"text": "hi", "n": [1, {"a": null}]}}]);
    let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "system_instruction", "content": "Be brief."},
        {"id": "u", "action": "user_message", "content": "a\u{0}b\u{2028}😀\"\\", "metadata": {"k": 1}, "createdAt": 7},
        {"action": "tool_call_request", "toolCalls": calls},
        {"action": "tool_result", "content": "hi", "toolCallId": "c1", "toolName": "echo", "isError": false},
        {"action": "agent_message", "content": "}{"},
        {"action": "compaction", "content": ""}
    ]}));
    let ids = ids(&outcome["events"]);
    assert_eq!(outcome["leafId"], ids[5].as_str());
    assert_eq!(ids[1], "u");
    let event = |seq: usize, action: &str, content: &str, more: Value| {
        let mut event = json!({
            "id": ids[seq - 1], "sessionId": "s", "seq": seq,
            "parentId": seq.checked_sub(2).map(|parent| &ids[parent]),
            "action": action, "content": content, "createdAt": 1_000_000
        });
        event
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        event
    };
    assert_eq!(
        alice.events(),
        [
            event(1, "system_instruction", "Be brief.", json!({})),
            event(
                2,
                "user_message",
                "a\u{0}b\u{2028}😀\"\\",
                json!({"metadata": {"k": 1}, "createdAt": 7})
            ),
            event(3, "tool_call_request", "", json!({"toolCalls": calls})),
            event(
                4,
                "tool_result",
                "hi",
                json!({"toolCallId": "c1", "toolName": "echo", "isError": false})
            ),
            event(5, "agent_message", "}{", json!({})),
            event(6, "compaction", "", json!({})),
        ]
    );
    // Every event has the documented shape.
    for value in alice.events() {
        serde_json::from_value::<Event>(value).unwrap();
    }
}

#[test]
fn an_event_can_be_sent_as_it_was_read() {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two"]);
    alice.ok("createSession", json!({"id": "t"}));
    let events = alice.events();
    let again = alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    assert!(
        again["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["inserted"] == false)
    );
    let copied = alice.ok("appendEvents", json!({"sessionId": "t", "events": events}));
    assert!(
        copied["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["inserted"] == true)
    );
}

#[test]
fn seq_grows_by_one_and_is_never_reused() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["1", "2", "3"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [event_ids[2], event_ids[0]]}),
    );
    alice.append_texts(&["4"]);
    let seqs: Vec<i64> = alice
        .events()
        .iter()
        .map(|event| event["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, [2, 4]);
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": alice.events().iter().map(|event| event["id"].clone()).collect::<Vec<_>>()}));
    alice.append_texts(&["5"]);
    assert_eq!(tree(&alice), [(5, 0)]);
}

#[test]
fn appends_are_idempotent_by_id() {
    let alice = Alice::with_session();
    let first = alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"id": "a", "action": "user_message", "content": "first"}]}));
    assert_eq!(
        first["events"],
        json!([{"id": "a", "seq": 1, "inserted": true}])
    );
    let again = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"id": "a", "action": "user_message", "content": "second"},
            {"id": "b", "action": "user_message", "content": "new"},
            {"id": "b", "action": "user_message", "content": "twice in one call"}
        ]}),
    );
    assert_eq!(
        again["events"],
        json!([
            {"id": "a", "seq": 1, "inserted": false},
            {"id": "b", "seq": 2, "inserted": true},
            {"id": "b", "seq": 2, "inserted": false}
        ])
    );
    assert_eq!(again["leafId"], "b");
    assert_eq!(contents(&alice.events()), ["first", "new"]);
}

#[test]
fn a_resent_minted_id_is_recognized_without_an_index() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["one"]);
    let again = alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"id": event_ids[0], "action": "user_message", "content": "x"}]}));
    assert_eq!(again["events"][0]["inserted"], false);
    // An id that only looks minted is a caller's id, and is found as such.
    let fake = event_ids[0].replace(&event_ids[0][3..], "0123456789abcdef");
    for inserted in [true, false] {
        let sent = alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"id": fake, "action": "user_message", "content": "x"}]}));
        assert_eq!(
            sent["events"][0],
            json!({"id": fake, "seq": 2, "inserted": inserted})
        );
    }
}

#[test]
fn the_same_id_may_exist_in_two_sessions() {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    for session in ["s", "t"] {
        let sent = alice.ok("appendEvents", json!({"sessionId": session, "events": [{"id": "a", "action": "user_message", "content": "x"}]}));
        assert_eq!(sent["events"][0]["inserted"], true);
    }
}

#[test]
fn a_parent_is_the_leaf_a_named_event_or_null() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["1", "2"]);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": event_ids[0], "events": [user("3"), user("4")]}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": null, "events": [user("5")]}),
    );
    alice.append_texts(&["6"]);
    assert_eq!(
        tree(&alice),
        [(1, 0), (2, 1), (3, 1), (4, 3), (5, 0), (6, 5)]
    );
}

#[test]
fn an_event_in_a_batch_may_name_its_own_parent() {
    let alice = Alice::with_session();
    let event = |id: &str, parent: Value| json!({"id": id, "action": "user_message", "content": id, "parentId": parent});
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        event("a", json!(null)), event("b", json!("a")), event("c", json!("a")), event("d", json!(null)), user("e")
    ]}));
    assert_eq!(tree(&alice), [(1, 0), (2, 1), (3, 1), (4, 0), (5, 4)]);
}

#[test]
fn an_unknown_parent_is_an_error_and_writes_nothing() {
    let alice = Alice::with_session();
    alice.append_texts(&["1"]);
    let before = alice.db.dump();
    let error = alice
        .call(
            "appendEvents",
            json!({"sessionId": "s", "parentId": "nobody", "events": [user("2")]}),
        )
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["field"]),
        ("message_not_found", &json!("parentId"))
    );
    let later = json!({"sessionId": "s", "events": [user("2"), {"action": "user_message", "content": "3", "parentId": "e9-0123456789abcdef"}]});
    assert_eq!(
        alice.call("appendEvents", later).unwrap_err().details()["field"],
        "events[1].parentId"
    );
    // An event of another session can't be a parent.
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok("appendEvents", json!({"sessionId": "t", "events": [{"id": "x", "action": "user_message", "content": "x"}]}));
    assert_eq!(
        alice.refused(
            "appendEvents",
            json!({"sessionId": "s", "parentId": "x", "events": [user("2")]})
        ),
        "message_not_found"
    );
    alice.ok("deleteSession", json!({"sessionId": "t"}));
    // The rows that record where the cursors of later sessions start, and that a session of this id
    // has ended.
    let is_permanent = |line: &&str| {
        line.starts_with("cf_agents_config [Text(\"feed\"),")
            || line.starts_with("cf_agents_config [Text(\"ended ")
    };
    let after = alice.db.dump();
    let after: Vec<&str> = after.lines().filter(|line| !is_permanent(line)).collect();
    assert_eq!(after, before.lines().collect::<Vec<_>>());
}

#[test]
fn an_outdated_expected_leaf_writes_nothing() {
    let alice = Alice::with_session();
    let append = |expected: Value, id: &str| json!({"sessionId": "s", "expectedLeafId": expected, "events": [{"id": id, "action": "user_message", "content": id}]});
    alice.ok("appendEvents", append(json!(null), "a"));
    alice.ok("appendEvents", append(json!("a"), "b"));
    let before = alice.db.dump();
    for expected in [json!(null), json!("a"), json!("nobody")] {
        let error = alice
            .call("appendEvents", append(expected.clone(), "c"))
            .unwrap_err();
        assert_eq!(error.code.name(), "leaf_moved");
        assert_eq!(error.details()["leafId"], "b");
        assert_eq!(error.details()["expectedLeafId"], expected);
    }
    // The answer to `b` was lost, so the client sends `b` again: no conflict.
    let retried = alice.ok("appendEvents", append(json!("a"), "b"));
    assert_eq!(
        retried,
        json!({"events": [{"id": "b", "seq": 2, "inserted": false}], "leafId": "b"})
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn a_retry_with_more_events_appends_only_the_new_ones() {
    let alice = Alice::with_session();
    let event = |id: &str| json!({"id": id, "action": "user_message", "content": id});
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [event("a"), event("b")]}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": "a", "events": [event("c")]}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": "a", "events": [event("c"), event("d")]}),
    );
    assert_eq!(tree(&alice), [(1, 0), (2, 1), (3, 1), (4, 3)]);
}

#[test]
fn an_append_takes_two_statements_and_the_next_one_takes_one() {
    let alice = Alice::with_session();
    let own =
        |id: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": "x"}]});
    let message = |id: &str| {
        (
            "appendMessage",
            json!({"sessionId": "s", "message": own(id)}),
        )
    };
    let events = |texts: &[&str]| {
        let events: Vec<Value> = texts.iter().map(|text| user(text)).collect();
        ("appendEvents", json!({"sessionId": "s", "events": events}))
    };
    let assert_statements = |after: &str, statements: usize, (operation, body): (&str, Value)| {
        let send = |passing| {
            let db = Failing::after(&alice.db, passing);
            alice.send(&db, operation, body.to_string().as_bytes())
        };
        assert!(send(statements - 1).is_err(), "{operation} after {after}");
        assert!(send(statements).is_ok(), "{operation} after {after}");
    };
    assert_statements("createSession", 2, events(&["a"]));
    assert_statements("an append", 1, events(&["a"]));
    assert_statements("an append", 1, events(&["a", "b", "c"]));
    assert_statements("an append", 1, message("mine"));
    assert_statements("an append with an id", 1, events(&["a"]));
    // The id is known: the end of the log is read again, with the event.
    assert_statements("an append", 3, message("mine"));
    assert_statements("an append that adds nothing", 2, events(&["a"]));
    for (operation, body) in [
        ("updateSession", json!({"sessionId": "s", "name": "n"})),
        ("createSession", json!({"id": "other"})),
        ("addUsage", json!({"sessionId": "s", "inputTokens": 1})),
        ("configureAgent", json!({"maxSteps": 3})),
    ] {
        alice.ok(operation, body);
        assert_statements(operation, 2, events(&["a"]));
        alice.ok("loadEvents", json!({"sessionId": "s"}));
        assert_statements("loadEvents", 1, events(&["a"]));
    }
}

#[test]
fn an_agent_that_learns_marks_the_session_as_due_once() {
    let alice = Alice::learner(json!({}));
    let body = json!({"sessionId": "s", "events": [user("a")]}).to_string();
    let send = |passing| {
        let db = Failing::after(&alice.db, passing);
        alice.send(&db, "appendEvents", body.as_bytes())
    };
    // The end of the log, the event, the due time.
    assert!(send(2).is_err());
    assert!(send(3).is_ok());
    for _ in 0..3 {
        assert!(send(0).is_err());
        alice.append_texts(&["b"]);
        assert!(send(1).is_ok());
    }
}

#[test]
fn appends_schedule_a_learning_pass_once_until_it_is_overdue() {
    let alice = Alice::learner(json!({}));
    let append_to = |alice: &Alice| {
        let agent = alice.agent(&alice.db);
        let body = json!({"sessionId": "s", "events": [user("a")]}).to_string();
        let reply = wait_for(dispatch(&agent, "appendEvents", body)).unwrap();
        reply.grown.is_some()
    };
    let append = || append_to(&alice);
    let start_job = || wait_for(jobs::run(&alice.agent(&alice.db), JobKind::Learning));
    assert!(append(), "nothing was due");
    assert!(append(), "the job that sets the alarm has not started");
    start_job();
    assert!(!append(), "the alarm is set");
    alice.ok("configureAgent", json!({"maxSteps": 3}));
    assert!(!append(), "the alarm is still set");
    alice.host.advance(60_000);
    assert!(append(), "the pass is overdue");
    start_job();
    alice.starter.alarm_at.take();
    assert!(append(), "this activation knows no alarm");
    let manual = Alice::learner(json!({"after": "manual"}));
    assert!(!append_to(&manual), "it learns only when `learn` is called");
}

#[test]
fn a_searched_session_keeps_the_end_of_its_log() {
    let alice = Alice::with_session();
    alice.append_texts(&["a word"]);
    alice.ok("search", json!({"sessionId": "s", "query": "word"}));
    let body = json!({"sessionId": "s", "events": [user("a")]}).to_string();
    let send_after_append = |passing| {
        alice.append_texts(&["another word"]);
        let db = Failing::after(&alice.db, passing);
        alice.send(&db, "appendEvents", body.as_bytes())
    };
    // The event and its words.
    assert!(send_after_append(1).is_err());
    assert!(send_after_append(2).is_ok());
    assert_eq!(alice.events().len(), 4);
}

#[test]
fn a_failed_append_keeps_nothing_for_the_next_one() {
    let alice = Alice::with_session();
    alice.append_texts(&["a", "b"]);
    // Several statements in a transaction, each of which fails once.
    let long = "x".repeat(1 << 20);
    let events: Vec<Value> = (0..3).map(|_| user(&long)).collect();
    for passing in 0..4 {
        let db = Failing::after(&alice.db, passing);
        let body = json!({"sessionId": "s", "events": events}).to_string();
        if alice.send(&db, "appendEvents", body.as_bytes()).is_ok() {
            break;
        }
        let ids = alice.append_texts(&["c"]);
        let newest = alice.events().pop().unwrap();
        assert_eq!(newest["id"], ids[0], "{passing}");
    }
    assert!(
        alice
            .events()
            .windows(2)
            .all(|pair| pair[1]["parentId"] == pair[0]["id"])
    );
}

#[test]
fn an_append_schedules_work_only_if_compaction_is_enabled() {
    let alice = Alice::with_session();
    let own = json!({"role": "user", "parts": [{"type": "text", "text": "x"}]});
    let continues = || {
        let event = json!({"sessionId": "s", "events": [user("a")]});
        let message = json!({"sessionId": "s", "message": own});
        [("appendEvents", event), ("appendMessage", message)].map(|(operation, body)| {
            let agent = alice.agent(&alice.db);
            let reply = wait_for(dispatch(&agent, operation, body.to_string())).unwrap();
            reply.grown.is_some()
        })
    };
    assert_eq!(continues(), [false, false]);
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "compactAfter": 1000}),
    );
    assert_eq!(continues(), [true, true]);
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "compactAfter": null}),
    );
    assert_eq!(continues(), [false, false]);
    alice.ok("configureCompaction", json!({"compactAfter": 1000}));
    assert_eq!(
        continues(),
        [false, false],
        "the session's own setting applies"
    );
    alice.ok("createSession", json!({"id": "t"}));
    let body = json!({"sessionId": "t", "events": [user("a")]}).to_string();
    let agent = alice.agent(&alice.db);
    assert!(
        wait_for(dispatch(&agent, "appendEvents", body))
            .unwrap()
            .grown
            .is_some()
    );
}

#[test]
fn a_batch_split_into_statements_is_all_or_nothing() {
    let alice = Alice::with_session();
    let big = "x".repeat(400_000);
    let events: Vec<Value> = (0..10).map(|_| user(&big)).collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    // All events together are longer than one value of SQLite may be. They are read all
    // the same.
    assert_eq!(alice.events().len(), 10);
    assert!(
        alice
            .events()
            .iter()
            .all(|event| event["content"] == big.as_str())
    );
}

#[test]
fn a_thousand_events_are_accepted_in_one_call() {
    let alice = Alice::with_session();
    let events: Vec<Value> = (1..=1000).map(|n| user(&n.to_string())).collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    assert_eq!(alice.events().len(), 1000);
    assert_eq!(alice.events()[999]["seq"], 1000);
}

#[test]
fn an_event_that_grows_when_escaped_reads_back() {
    let alice = Alice::with_session();
    let controls = "\u{1}".repeat(800_000);
    alice.append_texts(&[&controls]);
    assert_eq!(alice.events()[0]["content"], controls.as_str());
}

#[test]
fn an_event_over_the_row_limit_is_sliced_and_reads_back() {
    let alice = Alice::with_session();
    let long = "é".repeat(1_000_000);
    let arguments = json!({"text": "x".repeat(1_000_000)});
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            user("small"),
            user(&long),
            {"action": "tool_call_request", "content": "y".repeat(500_000), "toolCalls": [{"id": "c", "name": "t", "arguments": arguments}],
             "metadata": {"m": "z".repeat(950_000)}},
            user("after")
        ]}),
    );
    // Both events together are longer than one answer may be.
    let page = |after: i64| {
        alice.ok(
            "loadEvents",
            json!({"sessionId": "s", "limit": 2, "afterSeq": after}),
        )
    };
    let events: Vec<Value> = [page(0), page(2)]
        .iter()
        .flat_map(|page| page.as_array().unwrap().clone())
        .collect();
    assert_eq!(events[1]["content"], long.as_str());
    assert_eq!(events[2]["toolCalls"][0]["arguments"], arguments);
    assert_eq!(events[2]["metadata"]["m"].as_str().unwrap().len(), 950_000);
    assert_eq!(events[3]["content"], "after");
    let ids = ids(&json!(events));
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [ids[1], ids[2]]}),
    );
    assert!(!alice.db.dump().contains("cf_agents_slices"));
}

#[test]
fn an_event_over_the_maximum_is_refused_with_its_index() {
    let alice = Alice::with_session();
    let before = alice.db.dump();
    let events = [user("small"), user(&"x".repeat(MAX_EVENT_BYTES + 1))];
    let error = alice
        .call("appendEvents", json!({"sessionId": "s", "events": events}))
        .unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    assert_eq!(error.details()["field"], "events[1]");
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn filters_are_combined_and_keep_the_order() {
    let alice = Alice::with_session();
    for n in 1..=6 {
        let action = if n % 2 == 0 {
            "agent_message"
        } else {
            "user_message"
        };
        alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"action": action, "content": n.to_string(), "createdAt": n * 10}]}));
    }
    let load = |filter: Value| {
        let mut body = json!({"sessionId": "s"});
        body.as_object_mut()
            .unwrap()
            .extend(filter.as_object().unwrap().clone());
        let events = alice.ok("loadEvents", body);
        contents(events.as_array().unwrap()).join("")
    };
    let table = [
        (json!({}), "123456"),
        (json!({"limit": 2}), "12"),
        (json!({"limit": 2, "tail": true}), "56"),
        (json!({"since": 30}), "3456"),
        (json!({"since": 31, "limit": 1}), "4"),
        (json!({"since": 61}), ""),
        (json!({"actions": ["agent_message"]}), "246"),
        (json!({"actions": []}), "123456"),
        (
            json!({"actions": ["agent_message", "user_message"], "tail": true, "limit": 3}),
            "456",
        ),
        (json!({"actions": ["compaction"]}), ""),
        (json!({"afterSeq": 4}), "56"),
        (json!({"beforeSeq": 3}), "12"),
        (json!({"beforeSeq": 5, "tail": true, "limit": 2}), "34"),
        (
            json!({"afterSeq": 1, "beforeSeq": 6, "since": 30, "actions": ["user_message"], "tail": true}),
            "35",
        ),
        (json!({"afterSeq": 0, "beforeSeq": 0}), ""),
    ];
    for (filter, expected) in table {
        assert_eq!(load(filter.clone()), expected, "{filter}");
    }
}

#[test]
fn deleting_reattaches_children_to_the_nearest_remaining_ancestor() {
    let alice = Alice::with_session();
    let line = alice.append_texts(&["1", "2", "3", "4", "5"]);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": line[1], "events": [user("6")]}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": line[2], "events": [user("7")]}),
    );
    assert_eq!(
        tree(&alice),
        [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 2), (7, 3)]
    );
    let deleted = alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [line[1], line[2], line[1], "nobody"]}),
    );
    assert_eq!(deleted, json!({"deleted": 2}));
    assert_eq!(tree(&alice), [(1, 0), (4, 1), (5, 4), (6, 1), (7, 1)]);
    // When the root is deleted, its children become roots.
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [line[0]]}),
    );
    assert_eq!(tree(&alice), [(4, 0), (5, 4), (6, 0), (7, 0)]);
}

#[test]
fn after_deleting_the_leaf_the_newest_event_is_the_leaf() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["1", "2", "3"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [event_ids[2]]}),
    );
    let outcome = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "expectedLeafId": event_ids[1], "events": [user("4")]}),
    );
    assert_eq!(outcome["events"][0]["seq"], 4);
    assert_eq!(tree(&alice), [(1, 0), (2, 1), (4, 2)]);
}

#[test]
fn a_corrupt_event_is_named_and_others_are_readable() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["1", "2", "3"]);
    for damage in ["'{broken'", "'{a:1'", "'nonsense'"] {
        alice
            .db
            .run(
                &format!("UPDATE cf_agents_events SET metadata = {damage} WHERE seq = 2"),
                &[],
            )
            .unwrap();
        let error = alice
            .call("loadEvents", json!({"sessionId": "s"}))
            .unwrap_err();
        assert_eq!(
            (error.code.name(), &error.details()["id"]),
            ("corrupt_row", &json!(event_ids[1]))
        );
        assert_eq!(
            ids(&alice.ok("loadEvents", json!({"sessionId": "s", "limit": 1}))),
            [event_ids[0].as_str()]
        );
        assert_eq!(
            ids(&alice.ok("loadEvents", json!({"sessionId": "s", "afterSeq": 2}))),
            [event_ids[2].as_str()]
        );
    }
    alice
        .db
        .run(
            "UPDATE cf_agents_events SET tool = '{', metadata = NULL WHERE seq = 2",
            &[],
        )
        .unwrap();
    assert_eq!(
        alice.refused("loadEvents", json!({"sessionId": "s"})),
        "corrupt_row"
    );
    // As the error suggests, the caller deletes the event by its id. Appending works,
    // too.
    alice.append_texts(&["4"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [event_ids[1]]}),
    );
    assert_eq!(contents(&alice.events()), ["1", "3", "4"]);
}

#[test]
fn tool_fields_belong_to_tool_events() {
    let alice = Alice::with_session();
    let table = [
        (json!({"action": "user_message"}), "events[0].content"),
        (
            json!({"action": "agent_message", "content": null}),
            "events[0].content",
        ),
        (
            json!({"action": "tool_result", "toolCallId": "c", "toolName": "t"}),
            "events[0].content",
        ),
        (
            json!({"action": "tool_call_request"}),
            "events[0].toolCalls",
        ),
        (
            json!({"action": "tool_call_request", "toolCalls": []}),
            "events[0].toolCalls",
        ),
        (
            json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "n"}]}),
            "events[0].toolCalls[0].arguments",
        ),
        (
            json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "n", "arguments": "{}"}]}),
            "events[0].toolCalls[0].arguments",
        ),
        (
            json!({"action": "tool_result", "toolName": "n"}),
            "events[0].toolCallId",
        ),
        (
            json!({"action": "tool_result", "toolCallId": "c"}),
            "events[0].toolName",
        ),
        (
            json!({"action": "user_message", "toolCallId": "c"}),
            "events[0].toolCallId",
        ),
        (
            json!({"action": "agent_message", "toolCalls": []}),
            "events[0].toolCalls",
        ),
        (
            json!({"action": "user_message", "isError": true}),
            "events[0].isError",
        ),
    ];
    for (event, field) in table {
        let error = alice
            .call("appendEvents", json!({"sessionId": "s", "events": [event]}))
            .unwrap_err();
        assert_eq!(
            (error.code.name(), &error.details()["field"]),
            ("invalid_request", &json!(field))
        );
    }
}
