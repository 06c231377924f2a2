//! Branches and summaries that end inside a run: all readers use the same id for the same events.
//! The player (tests/player) plays the same at random.

use serde_json::{Value, json};

use crate::shared::turns::{calls, define, text_answer, user};
use crate::{Alice, ids};
use base::testing::ScriptedAnswer;

/// `u`, then the run `a1` (a call), `r1` (its result), `a2`.
fn with_run() -> Alice {
    let alice = Alice::with_session();
    let events = json!([
        {"id": "u", "action": "user_message", "content": "go"},
        {"id": "a1", "action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
        {"id": "r1", "action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"},
        {"id": "a2", "action": "agent_message", "content": "FIRST"},
    ]);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    alice
}

fn append(alice: &Alice, id: &str, parent_id: Option<&str>) {
    let mut body =
        json!({"sessionId": "s", "events": [{"id": id, "action": "agent_message", "content": id}]});
    if let Some(parent_id) = parent_id {
        body["parentId"] = json!(parent_id);
    }
    alice.ok("appendEvents", body);
}

fn history(alice: &Alice, leaf: &str) -> Vec<Value> {
    let page = alice.ok("getHistory", json!({"sessionId": "s", "leafId": leaf}));
    page["messages"].as_array().unwrap().clone()
}

fn shown(alice: &Alice, leaf: &str) -> Vec<String> {
    ids(&json!(history(alice, leaf)))
}

fn message(alice: &Alice, id: &str) -> Value {
    alice.ok("getMessage", json!({"sessionId": "s", "messageId": id}))
}

fn changes(alice: &Alice, since: &Value) -> (Vec<String>, Value) {
    let page = alice.ok("getChanges", json!({"sessionId": "s", "since": since}));
    let answer = page["changes"].as_array().unwrap().iter();
    let answer = answer.map(|change| {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        [text("type"), text("id")].join(" ")
    });
    (answer.collect(), page["cursor"].clone())
}

#[test]
fn a_branch_inside_a_run_splits_it_for_every_reader() {
    let alice = with_run();
    assert_eq!(shown(&alice, "a2"), ["u", "a1"]);
    let (_, cursor) = changes(&alice, &json!(0));
    append(&alice, "a2b", Some("r1"));
    assert_eq!(shown(&alice, "a2b"), ["u", "a1", "a2b"]);
    assert_eq!(shown(&alice, "a2"), ["u", "a1", "a2"]);
    for leaf in ["a2", "a2b"] {
        for one in history(&alice, leaf) {
            assert_eq!(message(&alice, one["id"].as_str().unwrap()), one);
        }
        let length = alice.ok("getPathLength", json!({"sessionId": "s", "leafId": leaf}));
        assert_eq!(length["length"], 3);
    }
    let branches = alice.ok("getBranches", json!({"sessionId": "s", "messageId": "a1"}));
    assert_eq!(ids(&branches["messages"]), ["a2", "a2b"]);
    // The run became two messages, and a third was appended.
    let (answer, cursor) = changes(&alice, &cursor);
    assert_eq!(answer, ["update a1", "update a2", "append a2b"]);

    let parts = json!([{"type": "text", "text": "new"}]);
    let new = json!({"id": "a1", "role": "assistant", "parts": parts});
    alice.ok("updateMessage", json!({"sessionId": "s", "message": new}));
    assert_eq!(shown(&alice, "a2"), ["u", "a1", "a2"]);
    assert_eq!(shown(&alice, "a2b"), ["u", "a1", "a2b"]);
    let (_, cursor) = changes(&alice, &cursor);
    let deleted = json!({"sessionId": "s", "messageIds": ["a2b"]});
    assert_eq!(alice.ok("deleteMessages", deleted)["deleted"], 1);
    assert_eq!(shown(&alice, "a2"), ["u", "a1", "a2"]);
    let (answer, _) = changes(&alice, &cursor);
    assert_eq!(answer, ["delete a2b"]);
}

#[test]
fn a_run_is_rejoined_when_the_other_branch_is_deleted() {
    let alice = with_run();
    append(&alice, "a2b", Some("r1"));
    let (_, cursor) = changes(&alice, &json!(0));
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["a2"]}),
    );
    assert_eq!(shown(&alice, "a2b"), ["u", "a1"]);
    assert_eq!(history(&alice, "a2b")[1], message(&alice, "a1"));
    assert_eq!(message(&alice, "a2b"), Value::Null);
    let (answer, _) = changes(&alice, &cursor);
    assert_eq!(answer, ["delete a2", "update a1", "update a2b"]);
}

#[test]
fn a_summary_covers_the_named_branch() {
    let alice = with_run();
    append(&alice, "a2b", Some("r1"));
    append(&alice, "a3b", None);
    let body = json!({"sessionId": "s", "fromId": "a2b", "toId": "a2b", "summary": "short"});
    let overlay = alice.ok("addCompaction", body);
    assert_eq!(
        (&overlay["fromId"], &overlay["toId"]),
        (&json!("a2b"), &json!("a3b"))
    );
    assert_eq!(shown(&alice, "a2"), ["u", "a1", "a2"]);
}

#[test]
fn the_part_after_a_summary_is_its_own_message_while_the_summary_exists() {
    let alice = with_run();
    let body = json!({"sessionId": "s", "fromId": "a1", "toId": "a1", "summary": "short"});
    let overlay = alice.ok("addCompaction", body);
    assert_eq!(overlay["toId"], "a2");
    append(&alice, "a3", None);
    assert_eq!(shown(&alice, "a3")[2], "a3");
    assert_eq!(message(&alice, "a3")["parts"][0]["text"], "a3");
    assert_eq!(message(&alice, "a1")["parts"].as_array().unwrap().len(), 2);
    let (_, cursor) = changes(&alice, &json!(0));
    let input = json!({"sessionId": "s", "compactionId": overlay["id"]});
    alice.ok("deleteCompaction", input);
    assert_eq!(shown(&alice, "a3"), ["u", "a1"]);
    assert_eq!(message(&alice, "a3"), Value::Null);
    let (answer, _) = changes(&alice, &cursor);
    assert_eq!(answer[1..], ["update a1", "update a3"]);
}

#[test]
fn an_old_approved_call_runs_once_whatever_was_appended() {
    let alice = Alice::with_model();
    define(&alice, "pay", true);
    alice.outbound.answer(calls(&[("c1", "pay", json!({}))]));
    alice.chat_text("pay");
    let mut message = alice.shown()[1].clone();
    let id = message["id"].as_str().unwrap().to_owned();
    let later = json!({"sessionId": "s", "parentId": id, "events": [{"action": "user_message", "content": "Meanwhile"}]});
    alice.ok("appendEvents", later);
    let at = message["parts"].as_array().unwrap().len() - 1;
    message["parts"][at]["state"] = json!("approval-responded");
    message["parts"][at]["approval"]["approved"] = json!(true);
    for time in 0..3 {
        if time == 0 {
            alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
        }
        alice.outbound.answer(text_answer("Done."));
        alice.chat(json!({"id": "s", "messages": [user("pay"), message]}));
        assert_eq!(alice.tool_calls().len(), 1, "time {time}");
        // Another branch of the run starts after the call.
        append(&alice, &format!("x{time}"), Some(&id));
    }
}
