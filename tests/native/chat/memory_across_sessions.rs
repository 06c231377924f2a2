//! What one conversation writes to memory is visible to another in its next turn, and the cached
//! part of its request doesn't change.

use serde_json::{Value, json};

use super::turns::text_answer;
use crate::Alice;

impl Alice {
    /// Runs a turn of this session, and returns the request that the model received.
    fn request_of_turn(&self, session: &str, number: usize, text: &str) -> Value {
        self.outbound.answer(text_answer("Noted."));
        self.run_turn_in(session, number, text);
        let calls = self.outbound.calls.borrow();
        serde_json::from_str(&calls.last().unwrap().body).unwrap()
    }
}

/// The messages of a request as JSON, one by one.
fn messages_of(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(Value::to_string).collect()
}

fn with_memory() -> Alice {
    let alice = Alice::with_model();
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "whenChanged": "remind"}),
    );
    alice
}

#[test]
fn new_memory_reaches_other_sessions_without_changing_the_prefix() {
    let alice = with_memory();
    alice.request_of_turn("one", 0, "Hello.");
    let before = alice.request_of_turn("two", 0, "Hello.");
    let write = json!({"label": "memory", "content": "Likes window seats."});
    alice.ok("setBlock", write);
    let after = alice.request_of_turn("two", 1, "Book a flight.");
    let (before, after) = (messages_of(&before), messages_of(&after));
    // The system text and the previous message are identical to the byte.
    assert_eq!(before, after[..before.len()]);
    assert!(!before.concat().contains("window seats"));
    let answer = after[before.len()..].concat();
    assert!(answer.contains("Likes window seats."), "{answer}");
    // The reminder also follows the prefix in the next turn, and the prefix has grown.
    let later = messages_of(&alice.request_of_turn("two", 2, "And a hotel."));
    let common = after.iter().zip(&later).take_while(|(a, b)| a == b).count();
    assert!(common >= before.len(), "{common}");
    assert!(later[common..].concat().contains("Likes window seats."));
}

#[test]
fn new_memory_is_in_the_instructions_after_a_prompt_refresh() {
    let alice = with_memory();
    for session in ["one", "two"] {
        alice.request_of_turn(session, 0, "Hello.");
    }
    let write = json!({"label": "memory", "content": "Likes window seats."});
    alice.ok("setBlock", write);
    let refreshed = json!({"refreshed": 2, "hasMore": false});
    assert_eq!(alice.ok("refreshPrompts", json!({})), refreshed);
    for session in ["one", "two"] {
        let request = alice.request_of_turn(session, 1, "Book.");
        let messages = messages_of(&request);
        assert!(messages[0].contains("Likes window seats."), "{messages:?}");
        // No reminder is needed.
        assert!(!messages[1..].concat().contains("window seats"));
    }
    let refreshed = alice.ok("refreshPrompts", json!({}));
    assert_eq!(refreshed["refreshed"], 2);
    assert_eq!(alice.ok("refreshPrompts", json!({}))["refreshed"], 0);
}

#[test]
fn one_call_refreshes_a_bounded_number_of_prompts() {
    let alice = Alice::default();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5001)
               INSERT INTO cf_agents_prompts (scope, prompt, hash, sections, frozen_at)
               SELECT 's' || i, '', '', '{}', 0 FROM n";
    base::database::Database::run(&alice.db, sql, &[]).unwrap();
    let first = alice.ok("refreshPrompts", json!({}));
    assert_eq!(first, json!({"refreshed": 5000, "hasMore": true}));
    let second = alice.ok("refreshPrompts", json!({}));
    assert_eq!(second, json!({"refreshed": 1, "hasMore": false}));
}

#[test]
fn a_remote_block_reminds_unless_its_definition_overrides_it() {
    let alice = Alice::default();
    for (label, source, when_changed, holds) in [
        ("a", json!({"agent": "user-1"}), None, "remind"),
        ("b", json!({"agent": "user-1"}), Some("wait"), "wait"),
        ("c", Value::Null, None, "wait"),
        ("d", Value::Null, Some("remind"), "remind"),
    ] {
        let mut body = json!({"label": label, "kind": "writable"});
        if source.is_object() {
            body["source"] = source;
        }
        if let Some(when_changed) = when_changed {
            body["whenChanged"] = json!(when_changed);
        }
        let block = alice.ok("defineBlock", body);
        assert_eq!(block["whenChanged"], holds, "{label}");
    }
}
