//! What a session's turns learn about its model stays in the session. Two agents differ only in
//! their other sessions; for one session, the requests to models, the summaries and the estimates
//! are identical to the byte.

use serde_json::{Value, json};

use super::context_window::{answered, refused};
use crate::Alice;
use crate::Dice;
use api::dispatch::follow_up;
use base::ids::Id;
use base::testing::{ScriptedAnswer, wait_for};

/// A length error without the maximum.
fn refused_without_numbers() -> ScriptedAnswer {
    let error = json!({"error": {"message": "Your input exceeds the context window of this model.", "code": "context_length_exceeded"}});
    ScriptedAnswer::text(400, &error.to_string())
}

/// An answer that reports this many input tokens.
fn reported(text: &str, input: i64) -> ScriptedAnswer {
    let answer = json!({
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": input, "completion_tokens": 3}});
    ScriptedAnswer::json(&answer).unwrap()
}

/// The answers that a caller gets about session `s`.
#[derive(Debug, Default, PartialEq)]
struct Received {
    sent: Vec<String>,
    answers: Vec<Value>,
}

impl Alice {
    /// Runs a turn. The caller chooses the ids of its messages, so they are the same in each play.
    pub fn run_turn_in(&self, session: &str, number: usize, text: &str) {
        let parts = json!([{"type": "text", "text": text}]);
        let message = json!({"id": format!("{session}{number}"), "role": "user", "parts": parts});
        self.chat(json!({"id": session, "message": message}));
        self.outbound.answers.borrow_mut().clear();
    }

    fn compacts(&self, session: &str) {
        self.outbound.answer(answered("SUMMARY"));
        let id = Id::parse(session.to_owned()).unwrap();
        let _ = wait_for(follow_up(&self.agent(&self.db), &id));
        self.outbound.answers.borrow_mut().clear();
    }

    /// A random action in another session.
    fn disturb_neighbor(&self, dice: &mut Dice, number: usize) {
        let session = format!("n{}", dice.roll(3));
        match dice.roll(8) {
            0 | 1 => {
                self.outbound.answer(Ok(refused_without_numbers()));
                self.outbound.answer(Ok(refused_without_numbers()));
                self.run_turn_in(&session, number, &"𓀀".repeat(400));
            }
            2 => {
                // A window size that is already known.
                self.outbound.answer(refused(900_000, 2_000));
                self.outbound.answer(answered("Yes."));
                self.run_turn_in(&session, number, &"𓀀".repeat(400));
            }
            3 => {
                let input = [1, 100, 10_000, 1_000_000];
                let input = input[dice.roll(input.len())];
                self.outbound.answer(Ok(reported("Yes.", input)));
                self.run_turn_in(&session, number, "A report.");
            }
            4 => {
                // Enough sessions that old rows of last turns are deleted.
                for other in 0..40 {
                    self.outbound.answer(Ok(reported("Yes.", 9_000)));
                    self.run_turn_in(&format!("m{number}-{other}"), 0, "Hi.");
                }
            }
            5 => self.compacts(&session),
            6 => drop(self.call("deleteSession", json!({"sessionId": session}))),
            _ => drop(self.call("compact", json!({"sessionId": session}))),
        }
        self.outbound.answers.borrow_mut().clear();
    }
}

fn play(seed: u64, has_neighbors: bool) -> Received {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"maxContextTokens": 2_000}));
    let (mut dice, mut other_dice) = (Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), Dice(!seed));
    let mut received = Received::default();
    for number in 0..25 {
        if has_neighbors {
            alice.disturb_neighbor(&mut other_dice, number);
        }
        let before = alice.outbound.calls.borrow().len();
        let words = 5 + dice.roll(60);
        match dice.roll(6) {
            0 => {
                alice.outbound.answer(Ok(refused_without_numbers()));
                alice.outbound.answer(answered("SUMMARY"));
            }
            1 => alice.outbound.answer(Ok(reported("So.", 700))),
            _ => {}
        }
        alice
            .outbound
            .answer(answered(&format!("Answer {number}.")));
        alice.run_turn_in("s", number, &"some words ".repeat(words));
        alice.compacts("s");
        for call in alice.outbound.calls.borrow().iter().skip(before) {
            received.sent.push(call.body.clone());
        }
        for operation in ["estimateTokens", "buildWorkingContext", "getSession"] {
            let mut reply = alice.ok(operation, json!({"sessionId": "s"}));
            // Minted ids differ.
            if let Some(reply) = reply.as_object_mut() {
                reply.remove("leafId");
            }
            received.answers.push(reply);
        }
        let made = alice.ok("getCompactions", json!({"sessionId": "s"}));
        received
            .answers
            .push(json!(made["compactions"].as_array().unwrap().len()));
        received.answers.push(made["decisions"].clone());
    }
    received
}

#[test]
fn other_sessions_calibration_does_not_change_a_request() {
    for seed in 1..=10 {
        let (alone, among_others) = (play(seed, false), play(seed, true));
        for (number, pair) in alone.sent.iter().zip(&among_others.sent).enumerate() {
            assert_eq!(pair.0, pair.1, "seed {seed}, request {number}");
        }
        assert_eq!(alone, among_others, "seed {seed}");
    }
}

impl Alice {
    /// Runs a turn with a long message. Returns the length of the request to the model.
    fn run_long_turn(&self, number: usize) -> usize {
        self.outbound.answer(answered("Yes."));
        self.run_turn_in("s", number, &"some words ".repeat(3_000));
        self.outbound.calls.borrow().last().unwrap().body.len()
    }
}

#[test]
fn a_long_message_shortens_no_other_session() {
    let alice = Alice::with_model();
    let request_length = |number| alice.run_long_turn(number);
    (0..8).for_each(|number| assert!(request_length(number) > 0));
    let before = request_length(8);
    alice.outbound.answer(Ok(refused_without_numbers()));
    alice.outbound.answer(Ok(refused_without_numbers()));
    alice.run_turn_in("t", 0, &"𓀀".repeat(2_000));
    assert!(request_length(9) > before);
}

#[test]
fn a_window_reported_by_the_provider_applies_to_the_whole_agent() {
    let alice = Alice::with_model();
    let request_length = |number| alice.run_long_turn(number);
    (0..8).for_each(|number| assert!(request_length(number) > 0));
    alice.outbound.answer(refused(90_000, 8_192));
    alice.outbound.answer(answered("Yes."));
    alice.run_turn_in("t", 0, &"some words ".repeat(1_000));
    // 8,192 tokens, of which a quarter is for the answer.
    let sent = request_length(9);
    assert!(sent < 6_144 * 6, "{sent}");
}

#[test]
fn a_sessions_calibration_outlives_its_turn_row() {
    let alice = Alice::with_model();
    for number in 0..4 {
        alice.outbound.answer(Ok(reported("Yes.", 30_000)));
        alice.run_turn_in("s", number, &"some words ".repeat(3_000));
    }
    let estimate = |alice: &Alice| alice.ok("estimateTokens", json!({"sessionId": "s"}));
    let before = estimate(&alice);
    for other in 0..80 {
        alice.outbound.answer(answered("Yes."));
        alice.run_turn_in(&format!("o{other}"), 0, "Hi.");
    }
    conversation::session::last_turns::fold_surplus(&alice.db).unwrap();
    assert_eq!(estimate(&alice), before);
    // The next turn continues from there.
    alice.outbound.answer(answered("Yes."));
    alice.run_turn_in("s", 9, "Hi.");
    let after = estimate(&alice)["messages"].as_i64().unwrap();
    assert!(after >= before["messages"].as_i64().unwrap());
}
