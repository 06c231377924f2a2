//! Learning and consolidation with each statement failing, and with an eviction before and after
//! each: afterwards each pass was counted once.

use serde_json::{Value, json};

use super::adds;
use crate::Alice;
use base::database::Database;
use base::testing::Failing;

/// An agent with a message that states three facts.
fn alice_with_fact() -> Alice {
    let alice = Alice::trusting();
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": "tea", "content": "The user hates tea."}),
    );
    alice.append_texts(&["I like tea.", "My cat is Tom."]);
    alice.host.advance(5_000);
    alice
}

fn answer(alice: &Alice) {
    alice.model_proposes(json!([
        {"action": "replace", "key": "tea", "content": "The user likes tea.", "events": ["e1"]},
        adds("cat", "The user's cat is Tom.", "e2"),
        adds("dog", "The user wants a dog.", "e2"),
    ]));
}

fn end() -> (Value, usize, Value) {
    (
        json!({"tea": "The user likes tea.", "cat": "The user's cat is Tom."}),
        1,
        json!(["applied", "applied", "pending"]),
    )
}

fn state(alice: &Alice) -> (Value, usize, Value) {
    let proposals = alice.proposals();
    let statuses = proposals.first().map_or(json!(null), |proposal| {
        let changes = proposal["changes"].as_array().unwrap();
        changes
            .iter()
            .map(|change| change["status"].clone())
            .collect()
    });
    (alice.facts(), proposals.len(), statuses)
}

#[test]
fn a_pass_is_applied_once_whichever_statement_fails() {
    let mut tried = 0;
    loop {
        let alice = alice_with_fact();
        let before = state(&alice);
        answer(&alice);
        let failing = Failing::after(&alice.db, tried);
        let round = alice.alarm_in(&failing);
        let is_over = !failing.has_failed();
        let after = state(&alice);
        assert!(
            after == before || after == end(),
            "statement {tried}: {after:?}"
        );
        if is_over {
            assert_eq!(after, end());
            assert_eq!(round.unwrap().next_at, None);
            break;
        }
        // The next activation: its rows determine what is due.
        if after == before {
            alice.outbound.answers.borrow_mut().clear();
            answer(&alice);
        }
        alice.host.advance(3_600_000);
        let round = alice.alarm();
        assert_eq!(round.next_at, None, "statement {tried}");
        assert_eq!(state(&alice), end(), "statement {tried}");
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
}

#[test]
fn a_crash_during_the_model_call_loses_nothing() {
    let alice = alice_with_fact();
    alice.outbound.hangs_after_answers.set(true);
    let dump = |alice: &Alice| alice.facts();
    let before = dump(&alice);
    {
        let agent = alice.agent(&alice.db);
        let memory = agent.memory();
        let pass = learning::rounds::learn_if_due(&memory, &alice.work.learning);
        base::testing::cut_off(pass);
    }
    assert_eq!(dump(&alice), before);
    assert_eq!(alice.proposals(), Vec::<Value>::new());
    alice.outbound.hangs_after_answers.set(false);
    answer(&alice);
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(state(&alice), end());
}

#[test]
fn text_deleted_during_the_model_call_is_not_learned() {
    let alice = std::rc::Rc::new(alice_with_fact());
    answer(&alice);
    let other = std::rc::Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let events = other.events();
        other.ok(
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": [events[1]["id"]], "purge": true}),
        );
    }));
    // The pass is repeated for what remains.
    alice.model_proposes(json!([
        {"action": "replace", "key": "tea", "content": "The user likes tea.", "events": ["e1"]},
    ]));
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(alice.request_count(), 2);
    assert!(!alice.learn_prompt().contains("Tom"));
    assert_eq!(alice.facts(), json!({"tea": "The user likes tea."}));
}

#[test]
fn messages_during_the_model_call_are_covered_by_the_next_pass() {
    let alice = std::rc::Rc::new(alice_with_fact());
    answer(&alice);
    let other = std::rc::Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        other.append_texts(&["I live in Rome."]);
    }));
    alice.model_proposes(json!([adds("home", "The user lives in Rome.", "e1")]));
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(alice.request_count(), 2);
    assert_eq!(alice.facts()["home"], "The user lives in Rome.");
}

#[test]
fn a_consolidation_is_applied_once_whichever_statement_fails() {
    let prepared = || {
        let alice = Alice::trusting();
        alice.ok(
            "defineBlock",
            json!({"label": "profile", "kind": "writable"}),
        );
        for (key, content) in [
            ("a", "The user likes tea."),
            ("b", "The user likes tea."),
            ("c", "The user lives in Rome."),
        ] {
            alice.ok(
                "setEntry",
                json!({"label": "facts", "key": key, "content": content}),
            );
        }
        alice
    };
    let answer = json!({
        "changes": [{"action": "replace", "key": "b", "content": "The user likes tea.", "merges": ["a"]}],
        "profile": "The user likes tea and lives in Rome.",
    });
    let body = json!({"profile": "profile"});
    let run = |alice: &Alice, db: &dyn Database| {
        alice.model_answers(&answer.to_string());
        alice.send(db, "consolidate", body.to_string().as_bytes())
    };
    let profile =
        |alice: &Alice| alice.ok("getBlock", json!({"label": "profile"}))["content"].clone();
    let is_done = |alice: &Alice| {
        let found = alice.ok("searchContext", json!({"label": "facts", "query": "tea"}));
        (
            found["results"].as_array().unwrap().len(),
            profile(alice),
            alice.proposals().len(),
        )
    };
    let (before, after) = (
        (2, json!(""), 0),
        (1, json!("The user likes tea and lives in Rome."), 1),
    );
    let mut tried = 0;
    loop {
        let alice = prepared();
        let failing = Failing::after(&alice.db, tried);
        let outcome = run(&alice, &failing);
        alice.host.advance(1);
        if !failing.has_failed() {
            outcome.unwrap();
            assert_eq!(is_done(&alice), after);
            break;
        }
        outcome.unwrap_err();
        assert_eq!(is_done(&alice), before, "statement {tried}");
        alice.outbound.answers.borrow_mut().clear();
        run(&alice, &alice.db).unwrap();
        alice.host.advance(1);
        assert_eq!(is_done(&alice), after, "statement {tried}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
