//! Automatic consolidation: when it is due, that each step runs once despite evictions, and its
//! spending limit.

use serde_json::{Value, json};

use super::adds;
use crate::Alice;
use base::host::Host as _;
use base::testing::Failing;

const IDLE_MS: i64 = 600_000;
const DAY_MS: i64 = 86_400_000;

const ORDER: &str = r#"{
    "changes": [{"action": "replace", "key": "drink", "content": "The user likes tea.", "merges": ["tea"]}],
    "profile": "The user likes tea."
}"#;

/// An agent that has learned the same fact twice, and consolidates its memory when idle.
fn idle(settings: Value) -> Alice {
    let mut learn = json!({"review": "auto", "consolidate": "idle", "profile": "profile"});
    for (name, value) in settings.as_object().unwrap() {
        learn[name] = value.clone();
    }
    let alice = Alice::learner(learn);
    alice.ok(
        "defineBlock",
        json!({"label": "profile", "kind": "writable"}),
    );
    for (key, text) in [("tea", "I like tea."), ("drink", "Tea is what I like.")] {
        alice.append_texts(&[text]);
        alice.host.advance(5_000);
        alice.model_proposes(json!([adds(key, "The user likes tea.", "e1")]));
        alice.learn();
        alice.host.advance(10);
    }
    assert_eq!(
        alice.facts(),
        json!({"tea": "The user likes tea.", "drink": "The user likes tea."})
    );
    alice
}

/// The keys that a search finds, the profile, and the proposals of consolidation.
fn state(alice: &Alice) -> (usize, Value, usize) {
    alice.host.advance(10);
    let found = alice.ok("searchContext", json!({"label": "facts", "query": "tea"}));
    let profile = alice.ok("getBlock", json!({"label": "profile"}));
    let proposals = alice.proposals();
    let ordered = proposals
        .iter()
        .filter(|one| one["kind"] == "consolidate")
        .count();
    (
        found["results"].as_array().unwrap().len(),
        profile["content"].clone(),
        ordered,
    )
}

fn before() -> (usize, Value, usize) {
    (2, json!(""), 0)
}

fn ordered() -> (usize, Value, usize) {
    (1, json!("The user likes tea."), 1)
}

#[test]
fn memory_is_consolidated_once_a_day_when_idle() {
    let alice = idle(json!({}));
    let due_at = alice.alarm().next_at.unwrap();
    assert_eq!(due_at, alice.host.now_ms() - 10 + IDLE_MS);
    let stats = alice.ok("getStats", json!({}));
    assert_eq!(stats["learning"]["consolidationDueAt"], due_at);
    // More is learned: consolidation waits for the next idle period.
    alice.host.advance(IDLE_MS / 2);
    alice.append_texts(&["My cat is Tom."]);
    alice.host.advance(5_000);
    alice.model_proposes(json!([adds("cat", "The user's cat is Tom.", "e1")]));
    alice.learn();
    let due_at = alice.host.now_ms() + IDLE_MS;
    assert_eq!(alice.alarm().next_at, Some(due_at));
    assert_eq!(alice.request_count(), 3);

    alice.host.advance(IDLE_MS);
    alice.model_answers(ORDER);
    let round = alice.alarm();
    assert!(round.has_learnt);
    assert_eq!(round.next_at, None);
    assert_eq!(state(&alice), ordered());
    assert_eq!(alice.request_count(), 4);
    // Nothing has changed since then.
    alice.host.advance(10 * DAY_MS);
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(alice.request_count(), 4);
    let proposals = alice.proposals();
    alice.ok("revertProposal", json!({"id": proposals[0]["id"]}));
    alice.host.advance(10);
    assert_eq!(state(&alice).0, 2);

    // A second consolidation waits until a day after the previous one.
    alice.model_answers(r#"{"changes": []}"#);
    alice.ok("consolidate", json!({}));
    let ended_at = alice.host.now_ms();
    alice.append_texts(&["My dog is Rex."]);
    alice.host.advance(5_000);
    alice.model_proposes(json!([adds("dog", "The user's dog is Rex.", "e1")]));
    alice.learn();
    assert_eq!(alice.alarm().next_at, Some(ended_at + DAY_MS));
}

#[test]
fn an_agent_without_the_setting_writes_no_row_for_it() {
    for settings in [
        json!({"consolidate": "manual"}),
        json!({"review": "propose"}),
    ] {
        let mut learn = json!({"review": "auto"});
        for (name, value) in settings.as_object().unwrap() {
            learn[name] = value.clone();
        }
        let alice = Alice::learner(learn);
        alice.append_texts(&["I like tea."]);
        alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
        alice.learn();
        let sql = "SELECT count(*) FROM cf_agents_config WHERE key = 'consolidation'";
        let rows = base::database::Database::rows(&alice.db, sql, &[]).unwrap();
        assert_eq!(rows[0].integer(0).unwrap(), 0, "{settings}");
        assert_eq!(alice.alarm().next_at, None, "{settings}");
    }
    // The model is not called while it is disabled, and it continues once enabled again.
    let alice = idle(json!({}));
    alice.ok("configureAgent", json!({"learn": {"into": "facts"}}));
    assert_eq!(alice.alarm().next_at, None);
    alice.ok("configureAgent", json!({"learn": null}));
    assert_eq!(alice.alarm().next_at, None);
    alice.ok(
        "configureAgent",
        json!({"learn": {"into": "facts", "consolidate": "idle"}}),
    );
    assert!(alice.alarm().next_at.is_some());
}

#[test]
fn an_approved_change_schedules_a_consolidation() {
    let alice = Alice::learner(json!({"consolidate": "idle"}));
    alice.append_texts(&["I like tea.", "My cat is Tom."]);
    alice.model_proposes(json!([
        adds("tea", "The user likes tea.", "e1"),
        adds("cat", "The user's cat is Tom.", "e2"),
    ]));
    alice.learn();
    assert_eq!(alice.alarm().next_at, None);
    let proposals = alice.proposals();
    alice.ok(
        "decideProposal",
        json!({"id": proposals[0]["id"], "approve": true}),
    );
    assert_eq!(alice.alarm().next_at, Some(alice.host.now_ms() + IDLE_MS));
}

#[test]
fn a_step_is_applied_once_whichever_statement_fails() {
    let mut tried = 0;
    loop {
        let alice = idle(json!({}));
        alice.host.advance(IDLE_MS);
        alice.model_answers(ORDER);
        let failing = Failing::after(&alice.db, tried);
        let _ = alice.alarm_in(&failing);
        let is_over = !failing.has_failed();
        let after = state(&alice);
        assert!(
            after == before() || after == ordered(),
            "statement {tried}: {after:?}"
        );
        if is_over {
            assert_eq!(after, ordered());
            break;
        }
        alice.outbound.answers.borrow_mut().clear();
        if after == before() {
            alice.model_answers(ORDER);
        }
        // The pause after a failure.
        alice.host.advance(60_000);
        assert_eq!(alice.alarm().next_at, None, "statement {tried}");
        assert_eq!(state(&alice), ordered(), "statement {tried}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn a_crash_during_the_model_call_neither_loses_nor_repeats_a_step() {
    let alice = idle(json!({}));
    alice.host.advance(IDLE_MS);
    alice.outbound.hangs_after_answers.set(true);
    {
        let agent = alice.agent(&alice.db);
        let memory = agent.memory();
        let round = learning::rounds::learn_if_due(&memory, &alice.work.learning);
        base::testing::cut_off(round);
    }
    assert_eq!(state(&alice), before());
    alice.outbound.hangs_after_answers.set(false);
    alice.model_answers(ORDER);
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(state(&alice), ordered());
}

#[test]
fn a_manual_step_during_the_model_call_supersedes_the_automatic_one() {
    let alice = std::rc::Rc::new(idle(json!({})));
    alice.host.advance(IDLE_MS);
    alice.model_answers(ORDER);
    alice.model_answers(ORDER);
    let other = std::rc::Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let done = other.ok("consolidate", json!({}));
        assert_eq!(done["complete"], true);
        other.host.advance(10);
    }));
    let round = alice.alarm();
    assert!(round.failures.is_empty());
    assert_eq!(round.next_at, None);
    assert_eq!(state(&alice), ordered());
}

#[test]
fn text_erased_during_the_model_call_is_in_no_profile() {
    let alice = std::rc::Rc::new(idle(json!({})));
    alice.host.advance(IDLE_MS);
    alice.model_answers(r#"{"changes": [], "profile": "The user likes tea."}"#);
    let other = std::rc::Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        for key in ["tea", "drink"] {
            let erased = json!({"label": "facts", "key": key, "purge": true});
            assert_eq!(other.ok("deleteEntry", erased)["deleted"], true);
        }
    }));
    let round = alice.alarm();
    assert!(round.failures.is_empty());
    let profile = alice.ok("getBlock", json!({"label": "profile"}));
    assert_eq!(profile["content"], "");
    assert!(
        alice
            .proposals()
            .iter()
            .all(|one| one["kind"] != "consolidate")
    );
}

#[test]
fn a_large_block_is_consolidated_in_one_round() {
    let alice = idle(json!({}));
    for number in 0..250 {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": format!("k{number}"), "content": format!("The user knows {number}.")}),
        );
    }
    alice.host.advance(IDLE_MS);
    let requests_before = alice.request_count();
    for _ in 0..3 {
        alice.model_answers(r#"{"changes": []}"#);
    }
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(alice.request_count() - requests_before, 3);
    assert!(alice.learn_prompt().contains("\"tea\""));
}

#[test]
fn failures_are_reported_back_off_and_stop() {
    let alice = idle(json!({}));
    alice.host.advance(IDLE_MS);
    let failure = |alice: &Alice| alice.ok("getStats", json!({}))["learning"].clone();
    for (attempt, pause_ms) in [(1, 60_000), (2, 120_000)] {
        alice.model_answers("I'd rather not.");
        let round = alice.alarm();
        let at = alice.host.now_ms();
        assert_eq!(round.next_at, Some(at + pause_ms));
        let error = &failure(&alice)["consolidationError"];
        assert_eq!(error["code"], "model_failed");
        assert_eq!(
            (&error["at"], &error["attempts"]),
            (&json!(at), &json!(attempt))
        );
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("not the requested JSON")
        );
        alice.host.advance(pause_ms);
    }
    // After the third failure, these entries are skipped.
    alice.model_answers("I'd rather not.");
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(failure(&alice)["consolidationError"], Value::Null);
    assert_eq!(state(&alice), before());
}

#[test]
fn consolidation_stays_within_the_learning_budget() {
    // Two passes report 220 tokens.
    let alice = idle(json!({"maxTokensPerDay": 200}));
    alice.host.advance(IDLE_MS);
    let requests_before = alice.request_count();
    let round = alice.alarm();
    assert_eq!(round.failures[0].code.name(), "rate_limited");
    assert_eq!(alice.request_count(), requests_before);
    let next_at = round.next_at.unwrap();
    let day = |at: i64| at.div_euclid(DAY_MS);
    assert_eq!(day(next_at), day(alice.host.now_ms()) + 1);
    alice.host.advance(next_at - alice.host.now_ms());
    alice.model_answers(ORDER);
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(state(&alice), ordered());
}

#[test]
fn entries_written_by_a_caller_are_consolidated_too() {
    let alice = Alice::learner(json!({"review": "auto", "consolidate": "idle"}));
    let set = |key: &str, text: &str| {
        let body = json!({"label": "facts", "key": key, "content": text});
        alice.ok("setEntry", body);
    };
    set("tea", "The user likes tea.");
    set("drink", "The user likes tea.");
    let due_at = alice.host.now_ms() + IDLE_MS;
    assert_eq!(alice.alarm().next_at, Some(due_at));
    alice.host.advance(5_000);
    // A model writes, and the idle period restarts.
    let arguments =
        json!({"label": "facts", "content": "The cat is Tom.", "metadata": {"title": "cat"}});
    alice.ok(
        "callTool",
        json!({"name": "set_context", "arguments": arguments}),
    );
    let due_at = alice.host.now_ms() + IDLE_MS;
    assert_eq!(alice.alarm().next_at, Some(due_at));
    alice.host.advance(IDLE_MS);
    alice.model_answers(ORDER);
    assert!(alice.alarm().has_learnt);
    assert_eq!(state(&alice).0, 1);
    // Neither the consolidation's own writes nor reverting them triggers another one.
    assert_eq!(alice.alarm().next_at, None);
    let proposals = alice.proposals();
    alice.ok("revertProposal", json!({"id": proposals[0]["id"]}));
    assert_eq!(alice.alarm().next_at, None);
    // Another block is not consolidated.
    alice.ok(
        "defineBlock",
        json!({"label": "other", "kind": "searchable"}),
    );
    alice.ok(
        "setEntry",
        json!({"label": "other", "key": "a", "content": "A."}),
    );
    assert_eq!(alice.alarm().next_at, None);
}

/// The clock jumps ahead and back: pending work waits no longer than usual.
#[test]
fn a_clock_that_was_wrong_once_delays_nothing() {
    for ahead in [2 * IDLE_MS, DAY_MS, 40 * DAY_MS, 4_000 * DAY_MS] {
        for after in ["turn", "idle"] {
            let alice = Alice::learner(json!({"review": "auto", "after": after}));
            alice.host.advance(ahead);
            alice.append_texts(&["I like tea."]);
            alice.host.advance(-ahead);
            alice.append_texts(&["I like tea a lot."]);
            alice.host.advance(2 * IDLE_MS);
            alice.model_proposes(json!([adds("drink", "The user likes tea.", "e1")]));
            // A pass may wait for another idle period.
            for _ in 0..2 {
                let round = alice.alarm();
                assert!(
                    round.failures.is_empty(),
                    "{ahead} {after}: {:?}",
                    round.failures
                );
                alice.host.advance(IDLE_MS);
            }
            assert_eq!(
                alice.facts(),
                json!({"drink": "The user likes tea."}),
                "{ahead} {after}"
            );
        }
        // No message arrived after the clock moved back.
        let alice = Alice::learner(json!({"review": "auto", "after": "idle"}));
        alice.host.advance(ahead);
        alice.append_texts(&["I like tea."]);
        alice.host.advance(IDLE_MS - ahead);
        alice.model_proposes(json!([adds("drink", "The user likes tea.", "e1")]));
        alice.alarm();
        assert_eq!(
            alice.facts(),
            json!({"drink": "The user likes tea."}),
            "{ahead}"
        );
    }
}
