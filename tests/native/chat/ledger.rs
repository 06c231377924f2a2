//! The spending of a turn is recorded in four places: the limits, the usage of the session,
//! `getUsage`, and the callback of `onTurnEnd`. All four agree, whenever the turn is stopped.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, user};
use base::database::Database as _;
use base::testing::ScriptedAnswer;
use chat::run::cycle::run;

/// The chunks of a model's stream until the turn is stopped.
fn pieces() -> Vec<Value> {
    let delta = |delta: Value| json!({"choices": [{"delta": delta}]});
    let call = |id: &str, name: &str, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}});
    vec![
        json!(null),
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "Let me think about it."})),
        delta(
            json!({"content": "Twelve words that are heard before the answer is stopped for good."}),
        ),
        call("c1", "echo", ""),
        call("c1", "echo", "{\"long\": \"an argument that is begun"),
        usage,
    ]
}

fn alice() -> Alice {
    let alice = Alice::with_model();
    alice.ok(
        "configureAgent",
        json!({
            "limits": {"tokensPerDay": 1_000_000, "costPerDay": 1_000},
            "prices": {"input": 3, "output": 5, "cachedInput": 1},
            "onTurnEnd": {"url": "https://tools.example/ended"},
        }),
    );
    define(&alice, "echo", false);
    alice
}

/// The numbers in each place: tokens and cost.
fn ledgers(alice: &Alice) -> Vec<(&'static str, i64, f64)> {
    let sum = |usage: &Value| {
        let tokens = |name: &str| usage[name].as_i64().unwrap();
        let cost = usage["cost"].as_f64().unwrap();
        (tokens("inputTokens") + tokens("outputTokens"), cost)
    };
    let number = |sql: &str| alice.db.rows(sql, &[]).unwrap()[0].number(0).unwrap();
    let session = alice.ok("getSession", json!({"sessionId": "s"}))["usage"].clone();
    let days = alice.ok("getUsage", json!({"by": "day"}));
    let day = days["usage"][0].clone();
    let report = "SELECT report FROM cf_agents_callbacks";
    let report = alice.db.rows(report, &[]).unwrap();
    let report: Value = serde_json::from_str(report[0].text(0).unwrap()).unwrap();
    let mut report = report;
    if report["cost"].is_null() {
        report["cost"] = json!(0.0);
    }
    let metered = "SELECT CAST(tokens AS REAL) FROM cf_agents_metered";
    let metered_cost = "SELECT CAST(cost AS REAL) FROM cf_agents_metered";
    let of = |name, (tokens, cost)| (name, tokens, cost);
    vec![
        ("limits", number(metered) as i64, number(metered_cost)),
        of("session", sum(&session)),
        of("getUsage", sum(&day)),
        of("onTurnEnd", sum(&report)),
    ]
}

fn assert_totals_agree(alice: &Alice, case: &str) -> i64 {
    let totals = ledgers(alice);
    let (_, tokens, cost) = totals[0];
    for (name, others_tokens, others_cost) in &totals {
        let is_close = (cost - others_cost).abs() < 1e-9;
        assert!(
            tokens == *others_tokens && is_close,
            "{case}: {name} of {totals:?}"
        );
    }
    tokens
}

/// Runs a turn until it waits, and stops it there.
fn stop_midway(alice: &Alice) {
    let body = json!({"id": "s", "message": user("Tell me a long story, please.")});
    let started = alice.begin(&body).unwrap();
    let agent = alice.agent(&alice.db);
    let mut running = std::pin::pin!(run(&agent, started.work.unwrap()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(running.as_mut().poll(&mut context).is_pending());
    alice.ok("cancelTurn", json!({"sessionId": "s"}));
    assert!(running.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_stopped_turn_has_the_same_usage_in_every_total() {
    let pieces = pieces();
    // Every prefix of the chunks, in every order of arrival; in the first step and
    // in the step after a tool.
    for after_tool in [false, true] {
        for received in 0..=pieces.len() {
            for only in [false, true] {
                let from = if only { received.saturating_sub(1) } else { 0 };
                let alice = alice();
                if after_tool {
                    alice
                        .outbound
                        .answer(calls(&[("c0", "echo", json!({"a": "x"}))]));
                    alice
                        .outbound
                        .answer(Ok(ScriptedAnswer::text(200, "echoed")));
                }
                let case = format!(
                    "stopped after {received} (only the last: {only}), after a tool: {after_tool}"
                );
                alice.outbound.hangs_after_answers.set(true);
                let text: String = pieces[from..received]
                    .iter()
                    .filter(|piece| !piece.is_null())
                    .map(|piece| format!("data: {piece}\n\n"))
                    .collect();
                if !text.is_empty() {
                    alice.outbound.answer(Ok(ScriptedAnswer::stream(&text)));
                    alice.outbound.stays_open.set(true);
                }
                stop_midway(&alice);
                let tokens = assert_totals_agree(&alice, &case);
                assert!(tokens > 0, "{case}: the model was called");
            }
        }
    }
}

#[test]
fn a_finished_or_failed_turn_has_the_same_usage_in_every_total() {
    let answer_with = |usage: Option<Value>| {
        let chunk = json!({"choices": [{"delta": {"content": "Said."}, "finish_reason": "stop"}]});
        let usage = usage
            .map(|usage| format!("data: {usage}\n\n"))
            .unwrap_or_default();
        Ok(ScriptedAnswer::stream(&format!(
            "data: {chunk}\n\n{usage}data: [DONE]\n\n"
        )))
    };
    for (name, answer, is_free) in [
        ("reported", answer_with(pieces().last().cloned()), false),
        ("unreported", answer_with(None), false),
        ("refused", Ok(ScriptedAnswer::text(400, "no")), true),
        (
            "broken off",
            Ok(ScriptedAnswer::stream(
                "data: {\"choices\": [{\"delta\": {\"content\": \"Sa\"}}]}\n\n",
            )),
            false,
        ),
        (
            "failed",
            Ok(ScriptedAnswer::stream(
                "data: {\"error\": {\"message\": \"no\"}}\n\n",
            )),
            false,
        ),
    ] {
        let alice = alice();
        alice.outbound.answer(answer);
        alice.chat(json!({"id": "s", "message": user("Hello.")}));
        let tokens = match alice.ok("getUsage", json!({"by": "day"}))["usage"].as_array() {
            Some(days) if days.is_empty() => 0,
            _ => assert_totals_agree(&alice, name),
        };
        assert_eq!(tokens == 0, is_free, "{name}");
    }
}
