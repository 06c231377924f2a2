//! The view of events as messages.

use serde_json::{Value, json};

use crate::{Alice, ids};
use api::operations::message_reads::HistoryPage;
use api::operations::message_writes::AppendedMessage;

fn text(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

impl Alice {
    pub fn send_message(&self, message: Value) -> Value {
        self.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message}),
        )
    }

    pub fn history(&self, more: Value) -> Value {
        let mut body = json!({"sessionId": "s"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.ok("getHistory", body)
    }
}

#[test]
fn a_message_of_any_shape_reads_back_exactly() {
    let alice = Alice::with_session();
    let odd = json!({
        "id": "m", "role": "assistant", "metadata": {"a": null, "b": [1, {"c": "\u{0}\u{2028}"}]},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "providerMetadata": {"x": {"signature": "s"}}},
            {"type": "text", "text": "", "state": "done"},
            {"type": "tool-echo", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"deep": [[]]}},
            {"type": "data-chart", "id": "d", "data": {"points": [0.1, -0.0, 1e30]}},
            {"type": "source-url", "sourceId": "1", "url": "https://example.com/?a=1&b=2"},
            {"type": "dynamic-tool", "toolName": "x", "toolCallId": "y", "state": "input-streaming", "input": null}
        ],
        "experimental": true
    });
    let appended = alice.send_message(odd.clone());
    let mut expected = odd;
    expected["createdAt"] = json!(1_000_000);
    assert_eq!(appended, json!({"inserted": true, "message": expected}));
    assert_eq!(
        alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"})),
        expected
    );
    assert_eq!(
        alice.history(json!({})),
        json!({"messages": [expected], "truncated": false, "cursor": null})
    );
    serde_json::from_value::<AppendedMessage>(appended).unwrap();
    serde_json::from_value::<HistoryPage>(alice.history(json!({}))).unwrap();
}

#[test]
fn created_at_is_kept_or_set_by_the_server() {
    let alice = Alice::with_session();
    let with = |id: &str, date: Value| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": "Hi"}], "createdAt": date});
    assert_eq!(
        alice.send_message(with("a", json!(7)))["message"]["createdAt"],
        7
    );
    assert_eq!(
        alice.send_message(with("b", json!("2026-01-01T00:00:00Z")))["message"]["createdAt"],
        "2026-01-01T00:00:00Z"
    );
    alice.send_message(text("c", "x"));
    let dates: Vec<Value> = alice.history(json!({}))["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["createdAt"].clone())
        .collect();
    assert_eq!(
        dates,
        [json!(7), json!("2026-01-01T00:00:00Z"), json!(1_000_000)]
    );
}

#[test]
fn messages_are_stored_as_one_event_and_events_read_as_messages() {
    let alice = Alice::with_session();
    let minted = alice.send_message(
        json!({"role": "user", "parts": [{"type": "text", "text": "hello"}], "metadata": {"k": 1}}),
    );
    let id = minted["message"]["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("e1-"));
    let calls = json!([{"id": "c1", "name": "echo", "arguments": {"a": 1}}]);
    let outcome = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_call_request", "toolCalls": calls},
            {"action": "tool_result", "toolCallId": "c1", "toolName": "echo", "content": "1"},
            {"action": "agent_message", "content": "It is 1.", "metadata": {"model": "m"}},
            {"action": "user_message", "content": "thanks"}
        ]}),
    );
    let event_ids = ids(&outcome["events"]);
    let events = alice.events();
    assert_eq!(
        (
            &events[0]["action"],
            &events[0]["content"],
            &events[0]["id"]
        ),
        (&json!("user_message"), &json!("hello"), &json!(id))
    );
    let history = alice.history(json!({}));
    assert_eq!(
        ids(&history["messages"]),
        [id.as_str(), &event_ids[0], &event_ids[3]]
    );
    let assistant = &history["messages"][1];
    assert_eq!(
        *assistant,
        json!({
            "id": event_ids[0], "role": "assistant", "metadata": {"model": "m"}, "createdAt": 1_000_000,
            "parts": [
                {"type": "tool-echo", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": "1"},
                {"type": "text", "text": "It is 1."}
            ]
        })
    );
    // The run is found by its first event's id, and by no other event's.
    assert_eq!(
        alice.ok(
            "getMessage",
            json!({"sessionId": "s", "messageId": event_ids[0]})
        ),
        *assistant
    );
    assert!(
        alice
            .ok(
                "getMessage",
                json!({"sessionId": "s", "messageId": event_ids[1]})
            )
            .is_null()
    );
    assert_eq!(
        alice.ok("getPathLength", json!({"sessionId": "s"})),
        json!({"length": 3})
    );
    assert_eq!(
        ids(&alice.ok("getBranches", json!({"sessionId": "s", "messageId": id}))["messages"]),
        [event_ids[0].as_str()]
    );
    assert_eq!(
        ids(&alice.ok(
            "getBranches",
            json!({"sessionId": "s", "messageId": event_ids[0]})
        )["messages"]),
        [event_ids[3].as_str()]
    );
}

#[test]
fn a_page_never_starts_inside_a_message() {
    let alice = Alice::with_session();
    let event = |n: usize| match n % 4 {
        0 => json!({"action": "user_message", "content": n.to_string()}),
        1 => {
            json!({"action": "tool_call_request", "toolCalls": [{"id": format!("c{n}"), "name": "t", "arguments": {}}]})
        }
        2 => {
            json!({"action": "tool_result", "toolCallId": format!("c{}", n - 1), "toolName": "t", "content": "r"})
        }
        _ => json!({"action": "agent_message", "content": n.to_string()}),
    };
    let events: Vec<Value> = (0..400).map(event).collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    let all = ids(&alice.history(json!({"limit": 1000}))["messages"]);
    assert_eq!(all.len(), 200);
    for limit in [1, 2, 3, 7, 199, 200] {
        let mut pages: Vec<Vec<String>> = Vec::new();
        let mut before = Value::Null;
        loop {
            let page = alice.history(json!({"limit": limit, "before": before}));
            let messages = page["messages"].as_array().unwrap();
            assert!(messages.iter().all(|message| message["role"] == "user"
                || message["parts"].as_array().unwrap().len() == 2));
            pages.push(ids(&page["messages"]));
            assert_eq!(page["truncated"], !page["cursor"].is_null());
            before = page["cursor"].clone();
            if before.is_null() {
                break;
            }
        }
        pages.reverse();
        assert_eq!(pages.concat(), all, "pages of {limit}");
    }
}

#[test]
fn a_page_is_bounded_but_has_at_least_one_message() {
    let alice = Alice::with_session();
    for n in 0..5 {
        alice.send_message(text(&format!("m{n}"), &"x".repeat(100_000)));
    }
    let page = alice.history(json!({"maxBytes": 250_000}));
    assert_eq!(ids(&page["messages"]), ["m3", "m4"]);
    let above = alice.history(json!({"maxBytes": 1, "before": page["cursor"]}));
    assert_eq!(ids(&above["messages"]), ["m2"]);
}

#[test]
fn a_cursor_stays_valid_when_its_message_is_deleted() {
    for deleted in ["m2", "m3"] {
        let alice = Alice::with_session();
        for n in 0..5 {
            alice.send_message(text(&format!("m{n}"), "x"));
        }
        let page = alice.history(json!({"limit": 2}));
        assert_eq!(ids(&page["messages"]), ["m3", "m4"]);
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": [deleted]}),
        );
        let above = alice.history(json!({"before": page["cursor"]}));
        let expected: &[&str] = if deleted == "m2" {
            &["m0", "m1"]
        } else {
            &["m0", "m1", "m2"]
        };
        assert_eq!(ids(&above["messages"]), expected);
    }
    let alice = Alice::with_session();
    for cursor in ["", "1", "2-2", "1-2", "x-y", "-1--2"] {
        assert_eq!(
            alice
                .call("getHistory", json!({"sessionId": "s", "before": cursor}))
                .unwrap_err()
                .details()["field"],
            "before"
        );
    }
}

#[test]
fn an_unchanged_update_writes_nothing_and_a_change_is_reported() {
    let alice = Alice::with_session();
    let stored = alice.send_message(text("m", "one"))["message"].clone();
    let before = alice.db.dump();
    assert_eq!(
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": stored})
        ),
        stored
    );
    assert_eq!(
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": text("m", "one")})
        ),
        stored
    );
    assert_eq!(
        alice.ok(
            "upsertMessage",
            json!({"sessionId": "s", "message": stored})
        ),
        json!({"inserted": false, "message": stored})
    );
    assert_eq!(alice.db.dump(), before);

    alice.host.advance(5);
    let updated = alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": text("m", "two")}),
    );
    assert_eq!(updated["parts"][0]["text"], "two");
    assert_eq!(updated["createdAt"], 1_000_000);
    assert_eq!(alice.events()[0]["content"], "two");
    assert_eq!(
        alice.ok("getSession", json!({"sessionId": "s"}))["updatedAt"],
        1_000_005
    );
    assert!(
        alice
            .ok(
                "updateMessage",
                json!({"sessionId": "s", "message": text("nobody", "x")})
            )
            .is_null()
    );
    assert_eq!(
        alice.ok(
            "upsertMessage",
            json!({"sessionId": "s", "message": text("new", "x")})
        )["inserted"],
        true
    );
}

#[test]
fn updating_a_run_of_events_replaces_it() {
    let alice = Alice::with_session();
    let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
        {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"},
        {"action": "user_message", "content": "next"}
    ]}));
    let first = ids(&outcome["events"])[0].clone();
    let read = alice.ok("getMessage", json!({"sessionId": "s", "messageId": first}));
    let before = alice.db.dump();
    assert_eq!(
        alice.ok("updateMessage", json!({"sessionId": "s", "message": read})),
        read
    );
    assert_eq!(alice.db.dump(), before);
    let message =
        json!({"id": first, "role": "assistant", "parts": [{"type": "text", "text": "in short"}]});
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message}),
    );
    let history = alice.history(json!({}));
    assert_eq!(history["messages"][0]["parts"][0]["text"], "in short");
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
    assert_eq!(alice.events().len(), 2);
}

#[test]
fn a_client_cannot_set_server_fields() {
    let alice = Alice::with_session();
    alice.ok(
        "configureAgent",
        json!({"reservedMetadataKeys": ["trusted"]}),
    );
    let message = json!({"id": "m", "role": "user", "metadata": {"trusted": true, "mine": 1},
        "parts": [{"type": "text", "text": "x", "providerMetadata": {"a": {}}}]});
    let stored = alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "source": "client", "message": message}),
    );
    assert_eq!(stored["message"]["metadata"], json!({"mine": 1}));
    assert_eq!(
        stored["message"]["parts"],
        json!([{"type": "text", "text": "x"}])
    );
}

#[test]
fn deleting_a_message_deletes_its_whole_run() {
    let alice = Alice::with_session();
    let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "user_message", "content": "1"},
        {"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
        {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"},
        {"action": "agent_message", "content": "2"},
        {"action": "user_message", "content": "3"}
    ]}));
    let all = ids(&outcome["events"]);
    assert_eq!(
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": [all[1], all[1], all[2], "nobody"]})
        ),
        json!({"deleted": 1})
    );
    assert_eq!(
        ids(&Value::from(alice.events())),
        [all[0].as_str(), all[4].as_str()]
    );
    assert_eq!(alice.events()[1]["parentId"], all[0].as_str());
}

#[test]
fn clearing_empties_the_log_and_seq_continues() {
    let alice = Alice::with_session();
    alice.append_texts(&["1", "2"]);
    assert_eq!(
        alice.ok("clearMessages", json!({"sessionId": "s"})),
        json!({"deleted": 2})
    );
    assert_eq!(
        alice.ok("clearMessages", json!({"sessionId": "s"})),
        json!({"deleted": 0})
    );
    assert_eq!(
        alice.history(json!({})),
        json!({"messages": [], "truncated": false, "cursor": null})
    );
    assert!(
        alice
            .ok("getLatestLeaf", json!({"sessionId": "s"}))
            .is_null()
    );
    assert_eq!(
        alice.ok("getPathLength", json!({"sessionId": "s"})),
        json!({"length": 0})
    );
    alice.append_texts(&["3"]);
    assert_eq!(alice.events()[0]["seq"], 3);
}

#[test]
fn set_leaf_selects_a_branch_until_another_one_grows() {
    let alice = Alice::with_session();
    for (id, parent) in [("a", json!(null)), ("b", json!("a")), ("c", json!("a"))] {
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": text(id, id), "parentId": parent}),
        );
    }
    let leaf = || alice.ok("getLatestLeaf", json!({"sessionId": "s"}))["id"].clone();
    assert_eq!(leaf(), "c");
    assert_eq!(
        alice.ok("setLeaf", json!({"sessionId": "s", "id": "b"})),
        json!({"leafId": "b"})
    );
    assert_eq!(leaf(), "b");
    assert_eq!(ids(&alice.history(json!({}))["messages"]), ["a", "b"]);
    assert_eq!(
        ids(&alice.history(json!({"leafId": "c"}))["messages"]),
        ["a", "c"]
    );
    assert_eq!(
        alice.refused(
            "appendMessage",
            json!({"sessionId": "s", "message": text("x", "x"), "expectedLeafId": "c"})
        ),
        "leaf_moved"
    );
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": text("d", "d"), "expectedLeafId": "b"}),
    );
    assert_eq!(ids(&alice.history(json!({}))["messages"]), ["a", "b", "d"]);
    // An append to another branch moves the leaf there.
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": text("e", "e"), "parentId": "c"}),
    );
    assert_eq!(ids(&alice.history(json!({}))["messages"]), ["a", "c", "e"]);
    // When the chosen leaf is deleted, its parent is the leaf.
    alice.ok("setLeaf", json!({"sessionId": "s", "id": "d"}));
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["d"]}),
    );
    assert_eq!(leaf(), "b");
    assert_eq!(
        alice.refused("setLeaf", json!({"sessionId": "s", "id": "d"})),
        "message_not_found"
    );
    assert_eq!(
        ids(&alice.ok("getBranches", json!({"sessionId": "s", "messageId": "a"}))["messages"]),
        ["b", "c"]
    );
    assert_eq!(
        alice.refused("getBranches", json!({"sessionId": "s", "messageId": "d"})),
        "message_not_found"
    );
}

#[test]
fn a_fork_copies_the_path_and_diverges() {
    let alice = Alice::with_session();
    let event_ids = alice.append_texts(&["1", "2", "3"]);
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": text("b", "4"), "parentId": event_ids[0]}),
    );
    let original = alice.history(json!({}));
    alice.host.advance(50);
    let fork = alice.ok(
        "forkSession",
        json!({"sessionId": "s", "name": "fork", "metadata": {"a": 1}}),
    );
    assert_eq!(
        (&fork["parentSessionId"], &fork["name"], &fork["metadata"]),
        (&json!("s"), &json!("fork"), &json!({"a": 1}))
    );
    let copy = alice.ok("getHistory", json!({"sessionId": fork["id"]}));
    assert_eq!(copy["messages"], original["messages"]);
    let events = alice.ok("loadEvents", json!({"sessionId": fork["id"]}));
    assert_eq!(
        (&events[0]["seq"], &events[1]["seq"], &events[1]["parentId"]),
        (&json!(1), &json!(2), &json!(event_ids[0]))
    );
    // In a fork, ids lead to their rows too, for any `seq` that they were minted with.
    let at_three = alice.ok(
        "forkSession",
        json!({"sessionId": "s", "atId": event_ids[2]}),
    );
    for id in &event_ids {
        assert_eq!(
            alice.ok(
                "getMessage",
                json!({"sessionId": at_three["id"], "messageId": id})
            )["id"],
            id.as_str()
        );
    }
    alice.ok(
        "appendMessage",
        json!({"sessionId": fork["id"], "message": text("only-there", "5")}),
    );
    assert_eq!(alice.history(json!({})), original);
    assert_eq!(
        alice.refused("forkSession", json!({"sessionId": "s", "atId": "nobody"})),
        "message_not_found"
    );
    assert_eq!(
        alice.refused("forkSession", json!({"sessionId": "nobody"})),
        "session_not_found"
    );
    alice.ok("createSession", json!({"id": "empty"}));
    let empty = alice.ok("forkSession", json!({"sessionId": "empty"}));
    assert_eq!(
        alice.ok("loadEvents", json!({"sessionId": empty["id"]})),
        json!([])
    );
}

#[test]
fn the_feed_reports_every_change_once_and_in_order() {
    let alice = Alice::with_session();
    let mut cursor = json!(0);
    let mut follow = || {
        let mut seen = Vec::new();
        loop {
            let page = alice.ok(
                "getChanges",
                json!({"sessionId": "s", "since": cursor, "limit": 2}),
            );
            cursor = page["cursor"].clone();
            let changes = page["changes"].as_array().unwrap().clone();
            if changes.is_empty() {
                return seen.join(" ");
            }
            seen.extend(changes.iter().map(|change| {
                format!(
                    "{}:{}",
                    change["type"].as_str().unwrap(),
                    change["id"].as_str().unwrap_or("-")
                )
            }));
        }
    };
    for id in ["a", "b", "c"] {
        alice.send_message(text(id, id));
    }
    assert_eq!(follow(), "append:a append:b append:c");
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": text("a", "A")}),
    );
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": text("b", "B")}),
    );
    assert_eq!(follow(), "update:a update:b");
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["c", "a"]}),
    );
    alice.send_message(text("d", "d"));
    assert_eq!(follow(), "delete:c delete:a append:d");
    assert_eq!(follow(), "");
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    alice.send_message(text("e", "e"));
    assert_eq!(follow(), "clear:- append:e");
    let late = alice.ok("getChanges", json!({"sessionId": "s"}));
    let types: Vec<_> = late["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["type"].clone())
        .collect();
    assert_eq!(types, ["clear", "append"]);
}

#[test]
fn a_long_message_reads_back_shrinks_and_leaves_no_slice() {
    let big = [
        json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "x".repeat(4_000_000)}]}),
        json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "\u{1F600}".repeat(700_000)}]}),
        json!({"id": "m", "role": "assistant", "parts": [
            {"type": "tool-big", "toolCallId": "c", "state": "output-available", "input": {}, "output": "o".repeat(3_000_000)},
            {"type": "text", "text": "done"}
        ]}),
        // The text and the message are too long for one row together, but not each alone.
        json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "x".repeat(1_200_000)}]}),
    ];
    for message in big {
        let alice = Alice::with_session();
        let expected_text: Vec<&str> = message["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        let mut expected = message.clone();
        expected["createdAt"] = json!(1_000_000);
        alice.send_message(text("before", "b"));
        assert!(alice.send_message(message.clone())["message"] == expected);
        assert!(
            alice.send_message(message.clone()) == json!({"inserted": false, "message": expected})
        );
        alice.send_message(text("after", "a"));
        assert!(alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"})) == expected);
        assert!(alice.history(json!({"maxBytes": 33_554_432}))["messages"][1] == expected);
        assert!(alice.events()[1]["content"] == expected_text.join("\n").as_str());
        assert_eq!(
            alice.ok("getPathLength", json!({"sessionId": "s"})),
            json!({"length": 3})
        );
        assert_eq!(
            ids(&alice.history(json!({"maxBytes": 1000}))["messages"]),
            ["after"]
        );

        let unchanged = alice.db.dump();
        assert!(
            alice.ok(
                "updateMessage",
                json!({"sessionId": "s", "message": expected})
            ) == expected
        );
        assert!(alice.db.dump() == unchanged);

        let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": text("m", "short")}),
        );
        assert_eq!(alice.events()[1]["content"], "short");
        assert!(
            alice.ok(
                "getMessage",
                json!({"sessionId": fork["id"], "messageId": "m"})
            ) == expected
        );
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": message}),
        );
        assert!(alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"})) == expected);
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["m"]}),
        );
        alice.ok("deleteSession", json!({"sessionId": fork["id"]}));
        assert!(!alice.db.dump().contains("cf_agents_slices"));
    }
}

#[test]
fn clearing_a_session_clears_long_messages() {
    let alice = Alice::with_session();
    alice.send_message(text("m", &"x".repeat(2_500_000)));
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert!(!alice.db.dump().contains("cf_agents_slices"));
}
