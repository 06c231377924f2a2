//! Estimates of a turn's tokens: prompt, tools and messages, corrected by the usage that
//! providers report.

use serde_json::{Value, json};

use crate::Alice;
use api::dispatch::follow_up;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::Dice;
use base::testing::{ScriptedAnswer, wait_for};
use base::tokens;
use context::compaction::journal::change_journal;
use store::calibration::Calibration;

fn estimate(alice: &Alice) -> Value {
    alice.ok("estimateTokens", json!({"sessionId": "s"}))
}

fn with_block() -> Alice {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "soul", "kind": "readonly", "defaultContent": "You are kind."}),
    );
    alice
}

fn prompt_tokens(alice: &Alice) -> i64 {
    let prompt = alice.ok("renderPrompt", json!({"sessionId": "s"}));
    tokens::estimate(prompt["prompt"].as_str().unwrap())
}

#[test]
fn the_prompt_counts_as_frozen_or_as_rendered() {
    let alice = with_block();
    let before = alice.db.dump();
    let tokens = prompt_tokens(&alice);
    assert!(tokens > 10);
    assert_eq!(estimate(&alice)["systemPrompt"], tokens);
    assert_eq!(alice.db.dump(), before, "an estimate freezes nothing");
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    alice.ok(
        "defineBlock",
        json!({"label": "soul", "kind": "readonly", "defaultContent": "You are kind. ".repeat(50)}),
    );
    assert!(prompt_tokens(&alice) > tokens);
    assert_eq!(estimate(&alice)["systemPrompt"], tokens);
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["abcdefgh"]}),
    );
    assert_eq!(estimate(&alice)["systemPrompt"], tokens + 2);
}

#[test]
fn tools_of_a_turn_are_counted() {
    let alice = with_block();
    assert_eq!(estimate(&alice)["tools"], 0);
    let mut last = 0;
    for (operation, body) in [
        ("defineBlock", json!({"label": "kb", "kind": "searchable"})),
        ("configureAgent", json!({"sessionSearch": true})),
        (
            "defineTool",
            json!({"name": "weather", "description": "Says it.", "parameters": {"type": "object"}, "service": "WEATHER"}),
        ),
    ] {
        if operation == "defineTool" {
            alice
                .outbound
                .bindings
                .borrow_mut()
                .push("WEATHER".to_owned());
        }
        alice.ok(operation, body);
        let estimate = estimate(&alice);
        let tools = estimate["tools"].as_i64().unwrap();
        assert!(tools > last, "{operation}");
        assert_eq!(
            estimate["total"].as_i64().unwrap(),
            tools + estimate["systemPrompt"].as_i64().unwrap()
        );
        last = tools;
    }
}

#[test]
fn an_unavailable_backend_does_not_fail_an_estimate() {
    let alice = with_block();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("NOTES".to_owned());
    alice.outbound.answer(Ok(ScriptedAnswer::text(500, "")));
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "source": {"service": "NOTES"}}),
    );
    alice
        .outbound
        .answer(Err(CallFailure::TimedOut { silence_ms: 1 }));
    assert!(estimate(&alice)["systemPrompt"].as_i64().unwrap() > 20);
}

#[test]
fn reported_usage_corrects_every_estimate() {
    let alice = with_block();
    alice.append_texts(&["a message of some words and then some more of them"]);
    let before = estimate(&alice);
    let context = || {
        let context = alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
        context["tokensEstimate"].as_i64().unwrap()
    };
    let context_before = context();
    let calibration = (0..20).fold(Calibration::default(), |sums, _| {
        sums.after(10_000, 20_000).unwrap()
    });
    let id = Id::parse("s".to_owned()).unwrap();
    change_journal(&alice.db, &id, |journal| {
        journal.calibration = Some(calibration);
    })
    .unwrap();
    let after = estimate(&alice);
    for field in ["messages", "systemPrompt", "total"] {
        let (before, after) = (&before[field], &after[field]);
        let factor = after.as_f64().unwrap() / before.as_f64().unwrap();
        assert!((1.8..=2.1).contains(&factor), "{field}: {before} {after}");
    }
    assert!(context() > context_before * 9 / 5);
    let answer = &alice.ok("compact", json!({"sessionId": "s", "dryRun": true}))["tokensBefore"];
    assert_eq!(answer, &after["total"]);
}

/// The estimate of the session's context, as a caller with its own loop receives it.
fn context_tokens(alice: &Alice, session: &str) -> i64 {
    let context = alice.ok("buildWorkingContext", json!({"sessionId": session}));
    context["tokensEstimate"].as_i64().unwrap()
}

/// Reports usage as a caller whose model counts this many tokens per estimated token.
fn report(alice: &Alice, factor: f64, honest: i64) {
    let answer = context_tokens(alice, "s");
    let counted = (honest as f64 * factor) as i64;
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": counted, "contextTokens": answer}),
    );
}

fn two_sessions() -> Alice {
    let alice = Alice::with_model();
    for session in ["s", "other"] {
        alice.ok("createSession", json!({"id": session}));
        let content = "a message of some words ".repeat(400);
        let event = json!({"action": "user_message", "content": content});
        let body = json!({"sessionId": session, "events": [event]});
        alice.ok("appendEvents", body);
    }
    alice
}

#[test]
fn a_callers_report_corrects_the_sessions_estimates() {
    let alice = two_sessions();
    let honest = context_tokens(&alice, "s");
    let body = json!({"sessionId": "s", "inputTokens": 2 * honest});
    alice.ok("addUsage", body);
    assert_eq!(context_tokens(&alice, "s"), honest, "of no context");
    let mut last = honest;
    for _ in 0..20 {
        report(&alice, 2.0, honest);
        let now = context_tokens(&alice, "s");
        assert!((last..=2 * honest).contains(&now), "{last} {now}");
        last = now;
    }
    assert!(last > honest * 19 / 10, "{honest} {last}");
    // Another session's estimates are unchanged.
    assert_eq!(context_tokens(&alice, "other"), honest);
    // A caller that sends fewer tokens than it reports is within the bounds.
    for (input, context) in [(i64::pow(2, 53) - 1, 1), (1, i64::pow(2, 53) - 1), (0, 5)] {
        let body = json!({"sessionId": "s", "inputTokens": input, "contextTokens": context});
        alice.ok("addUsage", body);
        let now = context_tokens(&alice, "s");
        assert!((honest / 2..=3 * honest).contains(&now), "{now}");
    }
    for _ in 0..20 {
        report(&alice, 1.0, honest);
    }
    let now = context_tokens(&alice, "s");
    assert!((honest * 9 / 10..=honest * 11 / 10).contains(&now), "{now}");
}

#[test]
fn a_repeated_report_is_used_once_and_adds_no_row() {
    let alice = two_sessions();
    let written = |body: Value| {
        alice.db.take_costs();
        alice.ok("addUsage", body);
        alice.db.take_costs().1
    };
    let honest = context_tokens(&alice, "s");
    // The first turn creates the agent's row for the day.
    written(json!({"sessionId": "s", "inputTokens": 1}));
    let plain = written(json!({"sessionId": "s", "inputTokens": 1}));
    let of_context =
        json!({"sessionId": "s", "inputTokens": 3 * honest, "contextTokens": honest, "id": "call"});
    let mut unnamed = of_context.clone();
    unnamed.as_object_mut().unwrap().remove("id");
    assert_eq!(written(unnamed), plain);
    alice.ok("addUsage", of_context.clone());
    let answer = context_tokens(&alice, "s");
    assert!(answer > 2 * honest);
    alice.ok("addUsage", of_context);
    assert_eq!(context_tokens(&alice, "s"), answer);
}

/// The sums are in the last turn's row if there is one, and turns continue from them.
#[test]
fn reports_and_turns_update_the_same_sums() {
    let counts = |alice: &Alice, text: &str, tokens: i64| {
        let answer = json!({
            "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 1}});
        alice.outbound.answer(ScriptedAnswer::json(&answer));
        let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
        alice.chat(json!({"id": "s", "message": message}));
    };
    let alice = two_sessions();
    let honest = context_tokens(&alice, "s");
    for _ in 0..20 {
        report(&alice, 2.0, honest);
    }
    let taught = context_tokens(&alice, "s");
    counts(&alice, "And now?", 2 * honest);
    let after_a_turn = context_tokens(&alice, "s");
    assert!(after_a_turn > taught * 19 / 20, "{taught} {after_a_turn}");
    for _ in 0..20 {
        report(&alice, 1.0, honest);
    }
    let corrected = context_tokens(&alice, "s");
    assert!(corrected < honest * 11 / 10, "{honest} {corrected}");
    assert_eq!(context_tokens(&alice, "other"), honest);
}

/// After a turn, a report of a context writes one more row: the last turn's.
#[test]
fn a_report_during_a_turn_does_not_change_the_turn() {
    let alice = two_sessions();
    let report = json!({"sessionId": "s", "inputTokens": 90_000, "contextTokens": 45_000});
    let written = |body: Value| {
        alice.db.take_costs();
        alice.ok("addUsage", body);
        alice.db.take_costs().1
    };
    let plain = json!({"sessionId": "s", "inputTokens": 1});
    written(plain.clone());
    let rows = written(plain);
    let message = json!({"role": "user", "parts": [{"type": "text", "text": "Go."}]});
    let body = json!({"id": "s", "message": message});
    let started = alice.begin(&body).unwrap();
    assert_eq!(written(report.clone()), rows + 1);
    let reply = context_tokens(&alice, "s");
    alice.outbound.answer(ScriptedAnswer::json(&json!({
        "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7_000, "completion_tokens": 1}})));
    alice.run_work(started.work.unwrap());
    assert_eq!(alice.events().len(), 3, "the turn continues to its answer");
    assert!(context_tokens(&alice, "s") >= reply);
    // From the turn's event and from the settled row.
    assert_eq!(written(report.clone()), rows + 1);
    assert_eq!(written(report), rows + 1);
    let used = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(used["usage"]["inputTokens"], 3 * 90_000 + 7_002);
}

#[test]
fn prompt_and_tools_count_toward_the_compaction_threshold() {
    // The messages alone are far below the threshold.
    let alice = with_block();
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 1_000, "tailTokenBudget": 10, "protectHead": 0}),
    );
    alice.append_texts(&["one two three"; 30]);
    let is_due = || {
        let grown = Id::parse("s".to_owned()).unwrap();
        // If the summarizer fails, the attempt is still recorded.
        let _ = wait_for(follow_up(&alice.agent(&alice.db), &grown));
        let answer = alice.ok("getCompactions", json!({"sessionId": "s"}));
        !answer["decisions"].as_array().unwrap().is_empty()
    };
    assert!(!is_due());
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["word ".repeat(1_000)]}),
    );
    assert!(is_due());
}

/// Random play: an incremental estimate equals that of an agent after an eviction.
#[test]
fn an_incremental_estimate_equals_a_full_one() {
    let mut compared = 0;
    for seed in 1..=40_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut alice = Alice::with_session();
        for _ in 0..30 {
            let known = alice.events();
            let any = |dice: &mut Dice| known[dice.roll(known.len())]["id"].clone();
            let word = "word ".repeat(1 + dice.roll(9));
            let event = json!({"action": "user_message", "content": word});
            let named = json!({"id": format!("e{}", known.len()), "action": "agent_message", "content": word});
            let (operation, mut body) = match dice.roll(12) {
                0 if !known.is_empty() => ("deleteEvents", json!({"eventIds": [any(&mut dice)]})),
                1 if !known.is_empty() => (
                    "addCompaction",
                    json!({"summary": word, "fromId": any(&mut dice), "toId": any(&mut dice)}),
                ),
                2 if !known.is_empty() => ("setLeaf", json!({"id": any(&mut dice)})),
                3 if !known.is_empty() => (
                    "appendEvents",
                    json!({"parentId": any(&mut dice), "events": [event]}),
                ),
                4 if !known.is_empty() => {
                    let message = json!({"id": any(&mut dice), "role": "user",
                                         "parts": [{"type": "text", "text": word}]});
                    ("updateMessage", json!({"message": message}))
                }
                5 => {
                    alice.ok("deleteSession", json!({"sessionId": "s"}));
                    ("createSession", json!({"id": "s"}))
                }
                6 => ("clearMessages", json!({})),
                _ => ("appendEvents", json!({"events": [named, event]})),
            };
            if operation != "createSession" {
                body["sessionId"] = json!("s");
            }
            // A range that lies on no path is refused, and changes nothing.
            drop(alice.call(operation, body));
            let estimate = |alice: &Alice| alice.ok("estimateTokens", json!({"sessionId": "s"}));
            let known = estimate(&alice);
            let compactions = std::mem::take(&mut alice.compactions);
            assert_eq!(known, estimate(&alice), "seed {seed}: {operation}");
            alice.compactions = compactions;
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}
