//! Reads with a byte limit, however much is stored.

use serde_json::{Value, json};

use crate::Alice;
use base::budget::MAX_ANSWER_BYTES;
use conversation::messages::view::MAX_RUN_EVENTS;

const MIB: usize = 1 << 20;

/// Appends a user's message, then a run of `count` results of `bytes` each. Returns the
/// id of the run's first event.
fn append_run(alice: &Alice, count: usize, bytes: usize) -> String {
    alice.append_texts(&["Go."]);
    let content = "x".repeat(bytes);
    let mut first = None;
    for n in 0..count {
        let event = match n {
            0 => json!({"action": "tool_call_request", "content": "",
                "toolCalls": [{"id": "c0", "name": "t", "arguments": {}}]}),
            n => json!({"action": "tool_result", "content": content,
                "toolCallId": format!("c{n}"), "toolName": "t"}),
        };
        let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
        let id = outcome["events"][0]["id"].as_str().unwrap().to_owned();
        first.get_or_insert(id);
    }
    first.unwrap()
}

#[test]
fn a_run_too_long_for_one_message_is_refused_with_advice() {
    let alice = Alice::with_session();
    let id = append_run(&alice, 12, MIB);
    let read = json!({"sessionId": "s", "messageId": id});
    let error = alice.call("getMessage", read).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    assert_eq!(error.details()["limit"], MAX_ANSWER_BYTES);
    assert!(error.details()["actual"].as_u64().unwrap() > 11 * MIB as u64);
    let (after, before) = (&error.details()["afterSeq"], &error.details()["beforeSeq"]);
    let events = alice.ok(
        "loadEvents",
        json!({"sessionId": "s", "afterSeq": after, "beforeSeq": before, "limit": 3}),
    );
    assert_eq!(events.as_array().unwrap().len(), 3);
    assert_eq!(events[0]["id"], id.as_str());
}

#[test]
fn a_run_that_fits_a_response_is_one_message() {
    let alice = Alice::with_session();
    let id = append_run(&alice, 4, MIB);
    let message = alice.ok("getMessage", json!({"sessionId": "s", "messageId": id}));
    assert_eq!(message["parts"].as_array().unwrap().len(), 4);
}

#[test]
fn a_long_run_is_deleted_without_being_read() {
    let alice = Alice::with_session();
    let id = append_run(&alice, 12, MIB);
    let deleted = alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": [id, id]}),
    );
    assert_eq!(deleted, json!({"deleted": 1}));
    assert_eq!(alice.events().len(), 1);
}

#[test]
fn a_long_run_is_replaced_without_being_read() {
    let alice = Alice::with_session();
    let id = append_run(&alice, 12, MIB);
    let message =
        json!({"id": id, "role": "assistant", "parts": [{"type": "text", "text": "Short."}]});
    let updated = alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message}),
    );
    assert_eq!(updated["parts"][0]["text"], "Short.");
    assert_eq!(alice.events().len(), 2);
}

#[test]
fn a_page_of_history_never_exceeds_the_response_limit() {
    let alice = Alice::with_session();
    for n in 0..12 {
        let message = json!({"role": "user", "parts": [{"type": "text", "text": format!("{n}").repeat(MIB)}]});
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message}),
        );
    }
    let mut seen = 0;
    let mut before = Value::Null;
    loop {
        let mut input = json!({"sessionId": "s", "maxBytes": 32 * MIB});
        if before.is_string() {
            input["before"] = before.clone();
        }
        let page = alice.ok("getHistory", input);
        assert!(page["messages"].to_string().len() < MAX_ANSWER_BYTES + MIB);
        seen += page["messages"].as_array().unwrap().len();
        before = page["cursor"].clone();
        if page["truncated"] == false {
            break;
        }
    }
    assert_eq!(seen, 12);
}

#[test]
fn a_page_of_long_events_reports_how_many_fit() {
    let alice = Alice::with_session();
    append_run(&alice, 30, MIB);
    for tail in [false, true] {
        let input = |limit: u64| json!({"sessionId": "s", "limit": limit, "tail": tail});
        let error = alice.call("loadEvents", input(1_000)).unwrap_err();
        assert_eq!(error.code.name(), "payload_too_large");
        let fitting = error.details()["limitThatFits"].as_u64().unwrap();
        assert!((3..=5).contains(&fitting), "{fitting}");
        let events = alice.ok("loadEvents", input(fitting));
        assert_eq!(events.as_array().unwrap().len() as u64, fitting);
    }
}

/// A page built by SQLite has the same events as a page built in Rust.
#[test]
fn both_page_builders_return_the_same_events() {
    let alice = Alice::with_session();
    append_run(&alice, 3, 9_000);
    let all = alice.ok("loadEvents", json!({"sessionId": "s", "limit": 1_000}));
    let share = alice.ok("loadEvents", json!({"sessionId": "s", "limit": 10}));
    assert_eq!(all, share);
    assert_eq!(all.as_array().unwrap().len(), 4);
}

#[test]
fn branches_too_large_for_a_response_are_read_one_by_one() {
    let alice = Alice::with_session();
    let [question] = alice.append_texts(&["Go."]).try_into().unwrap();
    let text = "x".repeat(3 * MIB);
    for n in 0..4 {
        let message = json!({"id": format!("b{n}"), "role": "assistant", "parts": [{"type": "text", "text": text}]});
        let input = json!({"sessionId": "s", "message": message, "parentId": question});
        alice.ok("appendMessage", input);
    }
    let input = json!({"sessionId": "s", "messageId": question});
    let error = alice.call("getBranches", input).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    let one = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "b3"}));
    assert_eq!(one["parts"][0]["text"].as_str().unwrap().len(), text.len());
}

#[test]
fn the_newest_message_of_a_long_run_fits_a_response() {
    let alice = Alice::with_session();
    append_run(&alice, 12, MIB);
    let message = alice.ok("getLatestLeaf", json!({"sessionId": "s"}));
    assert!(message.to_string().len() < MAX_ANSWER_BYTES + MIB);
}

#[test]
fn blocks_too_large_for_a_response_are_read_one_by_one() {
    let alice = Alice::with_session();
    let text = "x".repeat(MIB);
    for n in 0..9 {
        let label = format!("block{n}");
        alice.ok("defineBlock", json!({"label": label, "kind": "writable"}));
        alice.ok("setBlock", json!({"label": label, "content": text}));
    }
    let error = alice.call("getBlocks", json!({})).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    assert!(error.message.contains("getBlock"));
    let one = alice.ok("getBlock", json!({"label": "block8"}));
    assert_eq!(one["content"].as_str().unwrap().len(), MIB);
    // The prompt includes the blocks that fit.
    let prompt = alice.ok("renderPrompt", json!({}));
    assert!(prompt["prompt"].as_str().unwrap().contains("BLOCK8"));
}

#[test]
fn entry_pages_are_bounded_in_bytes() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    let text = "x".repeat(64 << 10);
    for n in 0..70 {
        let entry = json!({"label": "facts", "key": format!("k{n:03}"), "content": text});
        alice.ok("setEntry", entry);
    }
    let page = alice.ok("listEntries", json!({"label": "facts", "limit": 200}));
    assert_eq!(page["entries"].as_array().unwrap().len(), 64);
    assert_eq!(page["cursor"], "k063");
    let rest = alice.ok(
        "listEntries",
        json!({"label": "facts", "limit": 200, "cursor": "k063"}),
    );
    assert_eq!(rest["entries"].as_array().unwrap().len(), 6);
    assert_eq!(rest["cursor"], Value::Null);
}

#[test]
fn session_pages_are_bounded_in_bytes() {
    let alice = Alice::default();
    let text = "x".repeat(MIB - 1_000);
    for n in 0..6 {
        let metadata = json!({"n": n, "text": text});
        alice.ok(
            "createSession",
            json!({"id": format!("s{n}"), "metadata": metadata}),
        );
    }
    alice.ok(
        "createSession",
        json!({"id": "short", "metadata": {"n": 6}}),
    );
    let (mut seen, mut cursor, mut pages) = (0, Value::Null, 0);
    loop {
        let mut input = json!({"limit": 500});
        if cursor.is_string() {
            input["cursor"] = cursor.clone();
        }
        let page = alice.ok("listSessions", input);
        for session in page["sessions"].as_array().unwrap() {
            assert!(session["metadata"]["n"].is_i64(), "{}", session["id"]);
            seen += 1;
        }
        pages += 1;
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((seen, pages), (7, 2));
}

#[test]
fn loaded_documents_of_a_session_are_bounded_together() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    let text = "x".repeat(256 << 10);
    let mut refused = None;
    for n in 0..17 {
        let key = format!("k{n}");
        alice.ok(
            "putSkill",
            json!({"label": "skills", "key": key, "content": text}),
        );
        let load = json!({"label": "skills", "key": key, "sessionId": "s"});
        if let Err(error) = alice.call("loadSkill", load) {
            refused.get_or_insert((n, error));
        }
    }
    let (n, error) = refused.unwrap();
    assert_eq!(n, 16, "sixteen of 256 KiB are 4 MiB");
    assert_eq!(error.details()["field"], "key");
    assert!(error.message.contains("unload one"), "{}", error.message);
}

#[test]
fn requests_beside_a_long_run_do_not_read_its_contents() {
    let alice = Alice::with_session();
    append_run(&alice, MAX_RUN_EVENTS, 64 << 10);
    let before = alice.db.text_bytes();
    let message = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let started = api::chat::begin_chat(
        &alice.agent(&alice.db),
        "s",
        json!({"id": "s", "message": message})
            .to_string()
            .as_bytes(),
    );
    drop(started.unwrap());
    let read = alice.db.text_bytes() - before;
    assert!(read < MIB, "{read} bytes");
}
