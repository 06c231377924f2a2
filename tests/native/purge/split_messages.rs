//! A purge of a message whose run was split by a summary: deleting the summary joins the run, and
//! the message is purged as the caller saw it.

use serde_json::{Value, json};

use crate::shared::turns::{calls, define, text_answer};
use crate::{Alice, ids};
use base::testing::ScriptedAnswer;

/// The messages `a` (events `a`, `b`) and `c` (events `c`, `d`) of an assistant. They are
/// split by a summary of the message that starts with `summarized`.
fn split_by_summary(summarized: &str) -> Alice {
    let alice = Alice::with_session();
    let [mut events, after]: [Vec<Value>; 2] =
        [["a", "b"], ["c", "d"]].map(|ids| ids.map(|id| event(id, "agent_message")).to_vec());
    events.push(event("u", "user_message"));
    events.extend(after);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    summarize(&alice, summarized);
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["u"]}));
    alice
}

fn event(id: &str, action: &str) -> Value {
    json!({"id": id, "action": action, "content": id})
}

fn summarize(alice: &Alice, message: &str) {
    let body = json!({"sessionId": "s", "summary": "in short", "fromId": message, "toId": message});
    alice.ok("addCompaction", body);
}

/// Purges messages, and returns the receipt's counts.
fn purge(alice: &Alice, messages: &[&str]) -> Value {
    let body = json!({"sessionId": "s", "messageIds": messages, "purge": true});
    alice.ok("deleteMessages", body)
}

fn left(alice: &Alice) -> Vec<String> {
    ids(&alice.ok("loadEvents", json!({"sessionId": "s"})))
}

#[test]
fn a_purge_deletes_the_message_as_shown() {
    // The summarized message, the purged ones, and the remaining events.
    let cases: [(&str, &[&str], &[&str]); 7] = [
        ("a", &["a"], &["c", "d"]),
        ("a", &["c"], &["a", "b"]),
        ("a", &["a", "c"], &[]),
        ("c", &["c"], &["a", "b"]),
        ("c", &["a", "a"], &["c", "d"]),
        ("c", &["c", "a"], &[]),
        ("c", &["d"], &["a", "b", "c", "d"]),
    ];
    for (summarized, messages, events) in cases {
        let alice = split_by_summary(summarized);
        let receipt = purge(&alice, messages);
        let case = format!("{summarized} is summarized, {messages:?} purged: {receipt}");
        assert_eq!(receipt["deleted"], json!((4 - events.len()) / 2), "{case}");
        let removed_summaries = i64::from(messages.contains(&summarized));
        assert_eq!(
            receipt["erased"]["summaries"],
            json!(removed_summaries),
            "{case}"
        );
        assert_eq!(left(&alice), events, "{case}");
    }
}

/// An agent that calls back, whose turn wrote the run `ask`, `result`, `answer`. Returns
/// the ids of the three.
fn with_report() -> (Alice, Vec<String>) {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    let url = json!({"onTurnEnd": {"url": "https://tools.example/ended"}});
    alice.ok("configureAgent", url);
    define(&alice, "t", false);
    alice.outbound.answer(calls(&[("c", "t", json!({}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "found")));
    alice.outbound.answer(text_answer("answered"));
    alice.chat_text("hi");
    let events = left(&alice);
    assert_eq!(events.len(), 4, "{events:?}");
    (alice, events[1..].to_vec())
}

#[test]
fn the_callback_of_a_sibling_message_is_kept() {
    let (alice, run) = with_report();
    let events = [event("u", "user_message"), event("c", "agent_message")];
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    summarize(&alice, "c");
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["u"]}));
    let receipt = purge(&alice, &["c"]);
    assert_eq!(receipt["deleted"], json!(1), "{receipt}");
    assert_eq!(receipt["erased"]["callbacks"], json!(0), "{receipt}");
    let receipt = purge(&alice, &[&run[0]]);
    assert_eq!(receipt["erased"]["callbacks"], json!(1), "{receipt}");
}

#[test]
fn the_callback_of_a_rewritten_message_is_purged_with_it() {
    let (alice, run) = with_report();
    let parts = json!([{"type": "text", "text": "corrected"}]);
    let message = json!({"id": run[0], "role": "assistant", "parts": parts});
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": message}),
    );
    let receipt = purge(&alice, &[&run[0]]);
    assert_eq!(receipt["erased"]["callbacks"], json!(1), "{receipt}");
}
