//! Logs with everything that a page can contain.

use serde_json::{Value, json};

use crate::{Alice, Dice};
use base::columns::load_values;

pub const TEXTS: [&str; 8] = [
    "",
    "plain",
    "quotes \" and \\ and /",
    "\u{0}\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f}\u{7f}",
    "\u{2028}\u{2029}\u{feff}",
    "😀 e\u{301} 東京 \u{10ffff}",
    "{\"a\": [1, 2]}",
    "'single' <html> & </script>",
];

/// Appends a random item of a kind that a log may contain.
pub fn append(alice: &Alice, dice: &mut Dice, number: usize, kinds: usize) {
    let text = TEXTS[dice.roll(TEXTS.len())];
    let event = |event: Value| {
        alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
    };
    let message = |message: Value| {
        alice.ok(
            // `appendMessage` refuses an empty message of a user, which older logs have.
            "appendMessages",
            json!({"sessionId": "s", "messages": [message]}),
        );
    };
    let parts = json!([{"type": "text", "text": text}]);
    match dice.roll(kinds) {
        0 => event(json!({"action": "user_message", "content": text})),
        1 => message(json!({"role": "user", "parts": parts})),
        2 => message(
            json!({"id": format!("m{number} é\""), "role": "assistant", "parts": parts, "metadata": {"n": 1.0}}),
        ),
        3 => message(json!({"role": "user", "parts": parts, "createdAt": "2026-01-01T00:00:00Z"})),
        4 => event(json!({"action": "system_instruction", "content": text, "createdAt": 5})),
        // From here on, no kind is plain.
        5 => event(json!({"action": "agent_message", "content": text})),
        6 => event(json!({"action": "user_message", "content": text, "metadata": {"a": text}})),
        7 => event(json!({"action": "tool_call_request", "toolCalls": [
            {"id": format!("c{number}"), "name": "echo", "arguments": {"a": text}},
        ]})),
        8 => event(
            json!({"action": "tool_result", "toolCallId": format!("c{}", number - 1), "toolName": "echo", "content": text}),
        ),
        9 => message(json!({"role": "user", "parts": [
            {"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{}", "A".repeat(6_000))},
        ]})),
        10 => event(
            json!({"action": "user_message", "content": "long ".repeat(2_000 + dice.roll(14_000))}),
        ),
        11 => message(
            json!({"role": "user", "parts": [{"type": "text", "text": "sliced".repeat(400_000)}]}),
        ),
        12 => {
            let ids = ids(alice);
            let deleted = (!ids.is_empty()).then(|| ids[dice.roll(ids.len())].clone());
            alice.ok(
                "deleteEvents",
                json!({"sessionId": "s", "eventIds": deleted.as_slice()}),
            );
        }
        13 => {
            let ids: Vec<Value> = messages(alice)
                .iter()
                .map(|message| message["id"].clone())
                .collect();
            if ids.len() > 2 {
                let from = dice.roll(ids.len() - 1);
                let summary = json!({"sessionId": "s", "summary": text.to_owned() + ".", "fromId": ids[from], "toId": ids[from + 1]});
                // A range that begins or ends in a summary is refused.
                let _ = alice.call("addCompaction", summary);
            }
        }
        _ => {
            let ids = ids(alice);
            if !ids.is_empty() {
                let parent = &ids[dice.roll(ids.len())];
                alice.ok(
                    "appendEvents",
                    json!({"sessionId": "s", "parentId": parent, "events": [
                        {"action": "user_message", "content": text},
                    ]}),
                );
            }
        }
    }
}

/// The ids of all events.
pub fn ids(alice: &Alice) -> Vec<String> {
    let sql = "SELECT id FROM cf_agents_events ORDER BY seq";
    load_values(&alice.db, sql, &[]).unwrap()
}

pub fn messages(alice: &Alice) -> Vec<Value> {
    let page = alice.ok("getHistory", json!({"sessionId": "s", "limit": 100}));
    page["messages"].as_array().unwrap().clone()
}
