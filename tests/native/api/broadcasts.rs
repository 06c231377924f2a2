//! The frames that sockets receive after operations write: the changed messages if the client
//! supports them, or the whole list.

use serde_json::{Value, json};

use crate::Alice;
use api::dispatch::dispatch;
use base::ids::Id;
use base::testing::wait_for;
use chat::run::broadcast_throttle::{Broadcast, BroadcastThrottle, MessageChange};
use chat::run::watchers::send_broadcast;

fn session() -> Id {
    Id::parse("s".to_owned()).unwrap()
}

impl Alice {
    /// Runs operations that write within one second, and shows the sockets the written
    /// messages. Returns the types of the frames with the messages' ids.
    fn run_and_receive(&self, operations: &[(&str, Value)]) -> Vec<(String, Vec<String>)> {
        self.audience.are_there.set(true);
        self.audience.frames.borrow_mut().clear();
        let agent = self.agent(&self.db);
        let throttle = BroadcastThrottle::default();
        // The session was broadcast a moment ago.
        throttle.plan(&MessageChange::of_all(session()), 0);
        for (operation, body) in operations {
            let reply = wait_for(dispatch(&agent, operation, body.to_string())).unwrap();
            throttle.plan(&reply.changed.unwrap(), 1);
        }
        send_broadcast(&agent, &session(), &throttle.begin(&session(), 1_000));
        let frames = self.audience.frames.borrow();
        let frames = frames.iter().map(|frame| {
            let frame: Value = serde_json::from_str(frame).unwrap();
            let ids = match &frame["messages"] {
                Value::Array(messages) => messages.iter().map(|message| &message["id"]).collect(),
                _ => vec![&frame["message"]["id"]],
            };
            let ids = ids.iter().map(|id| id.as_str().unwrap().to_owned());
            (frame["type"].as_str().unwrap().to_owned(), ids.collect())
        });
        frames.collect()
    }
}

fn message(id: &str, role: &str, text: &str) -> Value {
    json!({"sessionId": "s", "message": {"id": id, "role": role, "parts": [{"type": "text", "text": text}]}})
}

fn with_call(id: &str, output: &str) -> Value {
    json!({"sessionId": "s", "message": {"id": id, "role": "assistant", "parts": [
        {"type": "tool-weather", "toolCallId": "call_0", "state": "output-available", "input": {}, "output": output}]}})
}

fn conversation() -> Alice {
    let alice = Alice::with_session();
    for (id, role) in [("u1", "user"), ("a1", "assistant"), ("u2", "user")] {
        alice.ok("appendMessage", message(id, role, "first"));
    }
    alice.ok("appendMessage", with_call("a2", "Rain"));
    alice
}

const CHANGED: &str = "cf_agent_message_updated";
const LIST: &str = "cf_agent_chat_messages";
const ALL: &[&str] = &["u1", "a1", "u2", "a2"];

fn frames(expected: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
    expected
        .iter()
        .map(|&(kind, ids)| (kind.to_owned(), owned(ids)))
        .collect()
}

#[test]
fn messages_changed_in_place_are_broadcast_alone() {
    let alice = conversation();
    let one = alice.run_and_receive(&[("updateMessage", message("u1", "user", "second"))]);
    assert_eq!(one, frames(&[(CHANGED, &["u1"])]));
    let several = alice.run_and_receive(&[
        ("updateMessage", message("a1", "assistant", "second")),
        ("upsertMessage", message("u1", "user", "third")),
        ("updateMessage", message("a1", "assistant", "third")),
    ]);
    assert_eq!(several, frames(&[(CHANGED, &["a1"]), (CHANGED, &["u1"])]));
}

#[test]
fn an_added_or_removed_message_broadcasts_the_list() {
    let alice = conversation();
    let changed = ("updateMessage", message("u1", "user", "second"));
    let fifth = [ALL, &["u3"]].concat();
    let answer = alice.run_and_receive(&[changed, ("upsertMessage", message("u3", "user", "new"))]);
    assert_eq!(answer, frames(&[(LIST, &fifth)]));
    let delete = json!({"sessionId": "s", "messageIds": ["u3"]});
    let changed = ("updateMessage", message("u1", "user", "third"));
    let answer = alice.run_and_receive(&[("deleteMessages", delete), changed]);
    assert_eq!(answer, frames(&[(LIST, ALL)]));
    // A message that is deleted before the broadcast.
    let delete = json!({"sessionId": "s", "messageIds": ["u1"]});
    alice.ok("deleteMessages", delete);
    alice.audience.frames.borrow_mut().clear();
    let deleted = Broadcast::Messages(vec![Id::parse("u1".to_owned()).unwrap()]);
    send_broadcast(&alice.agent(&alice.db), &session(), &deleted);
    assert!(alice.audience.frames.borrow()[0].contains(LIST));
}

/// A client merges a message that contains a call into the message with the same call id.
#[test]
fn a_message_with_calls_broadcasts_the_list() {
    let alice = conversation();
    let answer = alice.run_and_receive(&[("updateMessage", with_call("a2", "Sun"))]);
    assert_eq!(answer, frames(&[(LIST, ALL)]));
}

/// A run of several events reads as one message. If one event replaces it, the events that
/// continued it may become their own message.
#[test]
fn replacing_a_run_broadcasts_the_list() {
    let alice = Alice::with_session();
    let events = json!([
        {"id": "u1", "action": "user_message", "content": "Oslo?"},
        {"id": "r1", "action": "tool_call_request", "content": "", "toolCalls": [{"id": "c", "name": "weather", "arguments": {}}]},
        {"id": "r2", "action": "tool_result", "content": "Rain", "toolCallId": "c", "toolName": "weather"},
        {"id": "r3", "action": "agent_message", "content": "It rains."}]);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    let answer = alice.run_and_receive(&[("updateMessage", message("r1", "assistant", "No."))]);
    assert_eq!(answer, frames(&[(LIST, &["u1", "r1"])]));
    let answer = alice.run_and_receive(&[("updateMessage", message("r1", "assistant", "Yes."))]);
    assert_eq!(answer, frames(&[(CHANGED, &["r1"])]));
}

#[test]
fn long_messages_broadcast_the_bounded_list() {
    let alice = conversation();
    let long = "word ".repeat(110_000);
    let answer = alice.run_and_receive(&[("updateMessage", message("u1", "user", &long))]);
    assert_eq!(answer, frames(&[(LIST, ALL)]));
}
