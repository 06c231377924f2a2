//! Listeners that stop reading: their buffered bytes are counted, and are released in time.

use std::rc::Rc;

use serde_json::json;

use base::ids::Id;
use chat::run::listener::TurnListener;
use chat::stream::chunks::Chunk;

use crate::Alice;
use crate::chat::turns::{kinds, receive, text_answer, text_of, user};
use base::budget::{ByteBudget, TURNS};
use base::testing::wait_for;

/// A listener that reads nothing is disconnected after this many checks.
const MAX_CHECKS: usize = 2;

fn long() -> String {
    "word ".repeat(100_000)
}

#[test]
fn a_stalled_listener_gets_an_error_after_the_turn() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer(&long()));
    let started = alice
        .begin(&json!({"id": "s", "message": user("Go.")}))
        .unwrap();
    alice.run_work(started.work.unwrap());
    assert!(TURNS.with(ByteBudget::reserved_bytes) > 500_000);
    for _ in 0..MAX_CHECKS {
        assert!(alice.turns.is_busy());
        alice.turns.disconnect_silent();
    }
    assert_eq!(TURNS.with(ByteBudget::reserved_bytes), 0);
    assert!(!alice.turns.is_busy());
    let chunks = receive(started.listener);
    assert_eq!(kinds(&chunks), ["error"]);
    assert!(chunks[0]["errorText"].as_str().unwrap().contains("history"));
}

#[test]
fn a_slow_listener_receives_everything() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer(&long()));
    let started = alice
        .begin(&json!({"id": "s", "message": user("Go.")}))
        .unwrap();
    alice.run_work(started.work.unwrap());
    let mut listener = started.listener;
    let mut received = String::new();
    loop {
        for _ in 0..MAX_CHECKS - 1 {
            alice.turns.disconnect_silent();
        }
        match wait_for(listener.next()) {
            Some(events) => received.push_str(&events),
            None => break,
        }
    }
    assert!(received.contains(&long()) && received.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_running_turn_buffers_its_chunks_for_all_listeners() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello."));
    let started = alice
        .begin(&json!({"id": "s", "message": user("Go.")}))
        .unwrap();
    for _ in 0..2 * MAX_CHECKS {
        alice.turns.disconnect_silent();
    }
    alice.run_work(started.work.unwrap());
    assert_eq!(text_of(&receive(started.listener)), "Hello.");
}

#[test]
fn resuming_listeners_share_one_copy_of_the_backlog() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello."));
    let started = alice
        .begin(&json!({"id": "s", "message": user("Go.")}))
        .unwrap();
    let id = Id::parse("s".to_owned()).unwrap();
    let running = alice.turns.find(&id).unwrap();
    let reserved = || TURNS.with(ByteBudget::reserved_bytes);
    let before = reserved();
    let delta = long();
    let chunks = [Chunk::TextDelta {
        id: "0".to_owned(),
        delta: delta.clone(),
    }];
    let mut listeners: Vec<TurnListener> = (0..50)
        .map(|_| {
            let mut listener = TurnListener::to(Rc::clone(&running));
            listener.begin_with(&running, &chunks).unwrap();
            listener
        })
        .collect();
    assert!((delta.len()..delta.len() + 1_000).contains(&(reserved() - before)));
    alice.run_work(started.work.unwrap());
    let mut received = String::new();
    let mut first = listeners.pop().unwrap();
    while let Some(events) = wait_for(first.next()) {
        assert!(events.len() <= 70_000);
        received.push_str(&events);
    }
    let places = ["\"start\"", delta.as_str(), "Hello.", "[DONE]"].map(|part| received.find(part));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}"
    );
    // A listener that reads nothing after the turn's end uses no memory after a while.
    drop((first, running));
    for _ in 0..=MAX_CHECKS {
        alice.turns.disconnect_silent();
    }
    assert_eq!(reserved(), 0);
    let chunks = receive(listeners.pop().unwrap());
    assert_eq!(kinds(&chunks), ["error"]);
}
