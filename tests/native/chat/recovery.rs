//! Turns interrupted by the object's eviction. The next activation resumes a few at a time,
//! independently of each other, and retries none forever.

use serde_json::json;

use crate::Alice;
use crate::chat::turns::{receive, text_answer, text_of, user};
use api::chat::resume_chat;
use base::database::Database;
use base::testing::Failing;
use chat::run::resume::RecoveryRound;
use chat::run::work::TurnWork;
use chat::turn::store::MAX_RESUMED;

impl Alice {
    /// An agent that is evicted while turns of the sessions `s0`, `s1` … run.
    pub fn with_interrupted_turns(count: usize) -> Self {
        let mut alice = Self::with_model();
        for n in 0..count {
            let body = json!({"id": format!("s{n}"), "message": user("Go.")});
            drop(alice.begin(&body).unwrap());
        }
        alice.crash();
        alice
    }
}

fn sessions(round: &RecoveryRound) -> Vec<&str> {
    let works = round.works.iter().map(TurnWork::running);
    works.map(|running| running.session_id.as_str()).collect()
}

#[test]
fn interrupted_turns_are_resumed_in_small_batches() {
    let alice = Alice::with_interrupted_turns(MAX_RESUMED + 2);
    let round = alice.recover(&alice.db);
    assert_eq!(sessions(&round), ["s0", "s1", "s2", "s3"]);
    assert!(round.is_more_left);
    assert!(alice.recover(&alice.db).works.is_empty());
    for work in round.works {
        alice.outbound.answer(text_answer("Here."));
        alice.run_work(work);
    }
    let round = alice.recover(&alice.db);
    assert_eq!(sessions(&round), ["s4", "s5"]);
    assert!(!round.is_more_left);
}

#[test]
fn an_interrupted_turn_resumes_at_once_when_a_client_asks() {
    let alice = Alice::with_interrupted_turns(MAX_RESUMED + 1);
    let round = alice.recover(&alice.db);
    let last = format!("s{MAX_RESUMED}");
    let started = resume_chat(&alice.agent(&alice.db), &last)
        .unwrap()
        .unwrap();
    alice.outbound.answer(text_answer("Here."));
    alice.run_work(started.work.unwrap());
    assert_eq!(text_of(&receive(started.listener)), "Here.");
    drop(round);
}

#[test]
fn an_unreadable_turn_blocks_no_other() {
    let alice = Alice::with_interrupted_turns(3);
    let sql = "UPDATE cf_agents_last_turns SET state = '{' WHERE session_id = 's0'";
    alice.db.run(sql, &[]).unwrap();
    let round = alice.recover(&alice.db);
    assert_eq!(sessions(&round), ["s1", "s2"]);
    assert_eq!(round.failures[0].code.name(), "corrupt_row");
    assert!(!round.is_more_left, "it was closed");
    assert_eq!(alice.turn_rows(), 2);
}

#[test]
fn a_turn_with_a_storage_error_is_retried_and_blocks_no_other() {
    let alice = Alice::with_interrupted_turns(3);
    let round = alice.recover(&Failing::with(&alice.db, "s1"));
    assert_eq!(sessions(&round), ["s0", "s2"]);
    assert_eq!(round.failures[0].code.name(), "storage_failed");
    assert!(round.is_more_left);
    assert_eq!(sessions(&alice.recover(&alice.db)), ["s1"]);
}

#[test]
fn a_turn_that_crashes_the_object_is_abandoned_after_a_few_tries() {
    let mut alice = Alice::with_interrupted_turns(1);
    let mut tries = 0;
    while alice.turn_rows() > 0 {
        tries += 1;
        assert!(tries < 10);
        let round = alice.recover(&alice.db);
        let recoveries = alice
            .db
            .rows("SELECT recoveries FROM cf_agents_last_turns", &[])
            .unwrap();
        assert_eq!(recoveries[0].integer(0).unwrap(), tries);
        if tries < 3 {
            // Each time, the object crashes while it runs the turn.
            alice.crash();
            continue;
        }
        for work in round.works {
            alice.run_work(work);
        }
    }
    assert_eq!(tries, 3);
    let page = alice.ok("getHistory", json!({"sessionId": "s0"}));
    let text = page["messages"][1]["parts"][0]["text"].as_str().unwrap();
    assert!(text.contains("interrupted"), "{text}");
}

#[test]
fn an_interrupted_turn_can_be_cancelled_before_it_resumes() {
    let alice = Alice::with_interrupted_turns(1);
    let stopped = alice.ok("cancelTurn", json!({"sessionId": "s0"}));
    assert_eq!(stopped, json!({"cancelled": true}));
    assert_eq!(alice.turn_rows(), 0);
    assert!(alice.recover(&alice.db).works.is_empty());
    let again = alice.ok("cancelTurn", json!({"sessionId": "s0"}));
    assert_eq!(again, json!({"cancelled": false}));
}

#[test]
fn turns_waiting_for_capacity_are_not_counted_as_attempts() {
    use base::budget::{ByteBudget, Reservation, TURNS};
    let alice = Alice::with_interrupted_turns(1);
    let others = Reservation::take(&TURNS, TURNS.with(ByteBudget::max_bytes), "Others").unwrap();
    for _ in 0..5 {
        let round = alice.recover(&alice.db);
        assert!(round.works.is_empty() && round.is_more_left);
    }
    drop(others);
    alice.outbound.answer(text_answer("Here."));
    for work in alice.recover(&alice.db).works {
        alice.run_work(work);
    }
    assert_eq!(alice.turn_rows(), 0);
    let page = alice.ok("getHistory", json!({"sessionId": "s0"}));
    assert_eq!(page["messages"][1]["parts"][0]["text"], "Here.");
}
