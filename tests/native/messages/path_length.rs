//! The length of a path equals the number of messages that a walk finds.

use serde_json::{Value, json};

use crate::Alice;
use base::columns::find_value;
use base::testing::Dice;
use conversation::log::boundary::STARTS_MESSAGE;

const GAMES: u64 = 60;

/// The length, event by event.
fn walked(alice: &Alice, leaf: &Value) -> i64 {
    let sql = format!(
        "WITH RECURSIVE path (seq) AS (
           SELECT seq FROM cf_agents_events WHERE session_id = ?1 AND id = ?2
            UNION ALL
           SELECT e.parent_seq
             FROM path JOIN cf_agents_events AS e ON e.session_id = ?1 AND e.seq = path.seq)
         SELECT count(*)
           FROM path JOIN cf_agents_events AS e ON e.session_id = ?1 AND e.seq = path.seq
          WHERE {STARTS_MESSAGE}"
    );
    find_value(
        &alice.db,
        &sql,
        &["s".into(), leaf.as_str().unwrap().into()],
    )
    .unwrap()
    .unwrap()
}

fn event(dice: &mut Dice) -> Value {
    match dice.roll(4) {
        0 => json!({"action": "user_message", "content": "?"}),
        1 => {
            json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]})
        }
        2 => json!({"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"}),
        _ => json!({"action": "agent_message", "content": "!"}),
    }
}

#[test]
fn the_stored_path_length_matches_a_walk_in_random_trees() {
    let mut compared = 0;
    for seed in 1..=GAMES {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        for _ in 0..14 {
            let known = alice.events();
            let any = |dice: &mut Dice| known[dice.roll(known.len())]["id"].clone();
            if dice.roll(4) == 0 && !known.is_empty() {
                let some = json!([any(&mut dice), any(&mut dice)]);
                alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": some}));
                continue;
            }
            if dice.roll(6) == 0 {
                let message =
                    json!({"role": "assistant", "parts": [{"type": "text", "text": "m"}]});
                alice.ok(
                    "appendMessage",
                    json!({"sessionId": "s", "message": message}),
                );
                continue;
            }
            let events: Vec<Value> = (0..1 + dice.roll(5)).map(|_| event(&mut dice)).collect();
            let mut body = json!({"sessionId": "s", "events": events});
            if dice.roll(3) == 0 && !known.is_empty() {
                body["parentId"] = any(&mut dice);
            }
            alice.ok("appendEvents", body);
        }
        for event in alice.events() {
            let leaf = &event["id"];
            let answer = alice.ok("getPathLength", json!({"sessionId": "s", "leafId": leaf}));
            assert_eq!(
                answer["length"],
                walked(&alice, leaf),
                "seed {seed}, {leaf}"
            );
            compared += 1;
        }
        let stored = alice.assert_totals(&format!("seed {seed}"));
        assert_eq!(stored, alice.events().len(), "seed {seed}");
    }
    assert!(compared > 1_000, "{compared}");
}
