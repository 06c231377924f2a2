//! Retention during a turn: the messages that the turn answers are preserved.

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::turns::{text_answer, user};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The number of events that a run deletes, which a dry run reported before.
fn count_deleted(alice: &Alice) -> Value {
    let apply = |dry_run: bool| alice.ok("applyRetention", json!({"dryRun": dry_run}));
    let dry = apply(true)["gone"]["events"]["count"].clone();
    let mut step = apply(false);
    let deleted = step["gone"]["events"]["count"].clone();
    while step["complete"] == false {
        step = apply(false);
    }
    assert_eq!(dry, deleted);
    deleted
}

#[test]
fn a_message_being_regenerated_does_not_expire() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("One."));
    alice.chat_text("hi");
    alice.ok("configureAgent", json!({"retention": {"eventsDays": 1}}));
    alice.host.advance(2 * DAY);
    let again = json!({"id": "s", "trigger": "regenerate-message", "messages": [user("hi")]});
    let started = alice.begin(&again).unwrap();
    assert_eq!(count_deleted(&alice), 0);
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(started.work.unwrap());
    let shown = alice.shown();
    let texts = shown.iter().map(|message| &message["parts"]);
    let texts: Vec<&Value> = texts
        .map(|parts| &parts[parts.as_array().unwrap().len() - 1]["text"])
        .collect();
    assert_eq!(texts, ["hi", "Two."]);
    // Afterwards the old message and its old answer expire.
    assert_eq!(count_deleted(&alice), 2);
    assert_eq!(alice.events().len(), 1);
}
