//! The spending of turns, summaries and reports: by turn, by day and by model; and the
//! settings with which models are asked.

use serde_json::{Value, json};

use super::turns::{calls, user};
use crate::Alice;
use base::database::Database as _;
use base::host::Host as _;
use base::testing::ScriptedAnswer;
use conversation::session::usage_days::DAY_MS;

/// An answer that reports these tokens.
fn answer(input: i64, cached: i64, output: i64) -> ScriptedAnswer {
    let answer = json!({
        "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": input, "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached}}});
    ScriptedAnswer::json(&answer).unwrap()
}

impl Alice {
    /// Runs a turn that spends these tokens.
    fn spends(
        &self,
        session: &str,
        text: &str,
        (input, cached, output): (i64, i64, i64),
    ) -> Vec<Value> {
        self.outbound.answer(Ok(answer(input, cached, output)));
        self.chat(json!({"id": session, "message": user(text)}))
    }

    fn usage_by(&self, by: &str, more: Value) -> Vec<Value> {
        let mut input = json!({"by": by});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        let page = self.ok("getUsage", input);
        page["usage"].as_array().unwrap().clone()
    }

    fn passes(&self, ms: i64) {
        self.host.advance(ms);
    }

    /// The input tokens by day or by model.
    fn inputs(&self, by: &str, more: Value) -> Vec<i64> {
        let usage = self.usage_by(by, more);
        usage
            .iter()
            .map(|one| one["inputTokens"].as_i64().unwrap())
            .collect()
    }
}

fn priced() -> Alice {
    let alice = Alice::with_model();
    alice.ok(
        "configureAgent",
        json!({"prices": {"input": 2, "output": 10, "cachedInput": 0.5,
            "models": {"openai:small": {"input": 1, "output": 1}}}}),
    );
    alice
}

#[test]
fn a_turn_with_prices_reports_its_cost() {
    let alice = priced();
    let chunks = alice.spends("s", "one", (1_000, 400, 100));
    let usage = json!({"inputTokens": 1_000, "outputTokens": 100, "cachedInputTokens": 400, "cost": 0.0024});
    assert_eq!(
        chunks.last().unwrap(),
        &json!({"type": "finish", "finishReason": "stop", "messageMetadata": {"usage": usage}})
    );
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["usage"], usage);
    let turns = alice.usage_by("turn", json!({"sessionId": "s"}));
    let answer = alice.events()[1]["id"].clone();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["eventId"], answer);
    assert_eq!(turns[0]["model"], "openai:m");
    assert_eq!(turns[0]["cost"], 0.0024);
}

#[test]
fn a_turn_without_prices_reports_no_cost() {
    let alice = Alice::with_model();
    let chunks = alice.spends("s", "one", (1_000, 400, 100));
    assert_eq!(
        chunks.last().unwrap(),
        &json!({"type": "finish", "finishReason": "stop"})
    );
    assert_eq!(alice.usage_by("turn", json!({}))[0]["cost"], 0.0);
}

#[test]
fn usage_is_reported_by_turn_day_and_model() {
    let alice = priced();
    let start = alice.host.now_ms();
    alice.spends("s", "one", (100, 0, 1));
    alice.spends("s", "two", (200, 0, 2));
    alice.ok("configureAgent", json!({"model": "openai:small"}));
    alice.spends("t", "one", (400, 0, 4));
    alice.passes(DAY_MS);
    alice.spends("s", "three", (800, 0, 8));
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": 1_600, "model": "other:m"}),
    );
    let by_turn = |more| alice.inputs("turn", more);
    assert_eq!(by_turn(json!({"sessionId": "s"})), [800, 200, 100]);
    assert_eq!(
        by_turn(json!({})),
        [400, 800, 200, 100],
        "session by session"
    );
    assert_eq!(by_turn(json!({"since": start + DAY_MS})), [800]);
    assert_eq!(
        by_turn(json!({"sessionId": "s", "since": start + DAY_MS})),
        [800]
    );
    let today = (start + DAY_MS).div_euclid(DAY_MS) * DAY_MS;
    let days = alice.usage_by("day", json!({}));
    assert_eq!(
        days[0],
        json!({"day": today, "turns": 1, "failedTurns": 0, "inputTokens": 2_400, "outputTokens": 8, "cachedInputTokens": 0, "cost": 0.000808})
    );
    assert_eq!(days[1]["day"], today - DAY_MS);
    assert_eq!(alice.inputs("day", json!({})), [2_400, 700]);
    assert_eq!(alice.inputs("day", json!({"sessionId": "s"})), [2_400, 300]);
    assert_eq!(alice.inputs("day", json!({"sessionId": "t"})), [400]);
    assert_eq!(
        alice.inputs("day", json!({"since": start + DAY_MS})),
        [2_400]
    );
    let models = alice.usage_by("model", json!({}));
    let named: Vec<(&str, i64)> = models
        .iter()
        .map(|one| {
            (
                one["model"].as_str().unwrap(),
                one["turns"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [("other:m", 0), ("openai:small", 2), ("openai:m", 2)]
    );
    assert_eq!(
        alice.inputs("model", json!({"sessionId": "s"})),
        [1_600, 800, 300]
    );
}

#[test]
fn usage_is_paged() {
    let alice = Alice::with_model();
    for number in 0..5 {
        alice.spends("s", &format!("{number}"), (number + 1, 0, 0));
        alice.passes(DAY_MS);
    }
    for by in ["turn", "day"] {
        let mut all = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = alice.ok("getUsage", json!({"by": by, "limit": 2, "cursor": cursor}));
            all.extend(
                page["usage"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["inputTokens"].clone()),
            );
            cursor = page["cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(all, [5, 4, 3, 2, 1], "{by}");
    }
    for (by, cursor) in [
        ("turn", "x"),
        ("turn", "x:s"),
        ("day", "1:s"),
        ("model", "1"),
    ] {
        let error = alice
            .call("getUsage", json!({"by": by, "cursor": cursor}))
            .unwrap_err();
        assert_eq!(error.details()["field"], "cursor");
    }
    assert_eq!(
        alice.refused("getUsage", json!({"by": "day", "sessionId": "nobody"})),
        "session_not_found"
    );
}

#[test]
fn events_without_turns_are_scanned_page_by_page() {
    let alice = Alice::with_model();
    alice.spends("s", "one", (7, 0, 0));
    let events: Vec<Value> = (0..1_000)
        .map(|_| json!({"action": "user_message", "content": "x"}))
        .collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    let first = alice.ok("getUsage", json!({"by": "turn"}));
    assert_eq!(first["usage"], json!([]));
    let second = alice.ok("getUsage", json!({"by": "turn", "cursor": first["cursor"]}));
    assert_eq!(second["usage"][0]["inputTokens"], 7);
    assert_eq!(second["cursor"], Value::Null);
}

/// The sum of all days is the total usage, wherever it is stored.
#[test]
fn usage_is_neither_lost_nor_counted_twice() {
    let alice = Alice::with_model();
    let mut spent = 0;
    // More sessions than rows of last turns, more days than fit a row.
    for round in 0..12 {
        for session in 0..40 {
            if round > 0 && session % 5 != 0 {
                continue;
            }
            alice.spends(&format!("s{session}"), &format!("{round}"), (3, 1, 1));
            spent += 3;
        }
        alice.recover(&alice.db);
        alice.passes(DAY_MS);
        let sum: i64 = alice.inputs("day", json!({"limit": 1000})).iter().sum();
        assert_eq!(sum, spent, "round {round}");
    }
    let of_one: i64 = alice.inputs("day", json!({"sessionId": "s5"})).iter().sum();
    assert_eq!(of_one, 36);
    assert_eq!(alice.inputs("model", json!({"sessionId": "s1"})), [3]);
    // Deleting a session deletes its own list. The agent's usage remains.
    for session in ["s5", "s1"] {
        alice.ok("deleteSession", json!({"sessionId": session}));
    }
    assert_eq!(alice.inputs("day", json!({})).iter().sum::<i64>(), spent);
    alice.ok("clearMessages", json!({"sessionId": "s10"}));
    assert_eq!(alice.inputs("day", json!({})).iter().sum::<i64>(), spent);
    assert_eq!(
        alice
            .inputs("day", json!({"sessionId": "s10"}))
            .iter()
            .sum::<i64>(),
        36
    );
}

#[test]
fn a_later_turn_of_the_same_day_adds_no_row() {
    let alice = Alice::with_model();
    for text in ["one", "two", "three"] {
        alice.spends("s", text, (3, 0, 1));
    }
    let rows = |table: &str| {
        alice
            .db
            .rows(&format!("SELECT 1 FROM {table}"), &[])
            .unwrap()
            .len()
    };
    assert_eq!(rows("cf_agents_usage_days"), 0);
    assert_eq!(rows("cf_agents_last_turns"), 1);
    assert_eq!(alice.inputs("day", json!({})), [9]);
}

#[test]
fn summaries_use_their_own_model_and_are_counted() {
    let alice = priced();
    alice.ok("configureAgent", json!({"summaryModel": "openai:small"}));
    alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    let texts: Vec<String> = (0..10)
        .map(|number| format!("{number} {}", "word ".repeat(50)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let alice = {
        alice.ok("createSession", json!({"id": "s"}));
        alice.append_texts(&texts);
        alice
    };
    alice.outbound.answer(Ok(answer(500, 0, 40)));
    let outcome = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(outcome["reason"], "compacted", "{outcome}");
    let request: Value = serde_json::from_str(&alice.outbound.calls.borrow()[0].body).unwrap();
    assert_eq!(request["model"], "small");
    assert_eq!(
        alice.usage_by("model", json!({})),
        [
            json!({"model": "openai:small", "turns": 0, "failedTurns": 0, "inputTokens": 500, "outputTokens": 40,
            "cachedInputTokens": 0, "cost": 0.00054})
        ]
    );
    let error = alice
        .call("configureAgent", json!({"summaryModel": "gpt"}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "summaryModel");
}

#[test]
fn the_prompt_is_refreshed_as_configured() {
    for (setting, in_next_turn, after_compaction) in
        [("manual", 1, 1), ("compaction", 1, 2), ("turn", 2, 2)]
    {
        let alice = Alice::with_model();
        alice.ok("configureAgent", json!({"refreshPrompt": setting}));
        alice.ok(
            "configureCompaction",
            json!({"tailTokenBudget": 0, "protectHead": 0}),
        );
        alice.ok(
            "defineBlock",
            json!({"label": "memory", "kind": "writable"}),
        );
        let version = |prompt: &Value| {
            let prompt = prompt.as_str().unwrap();
            (1..=3)
                .find(|number| prompt.contains(&format!("Version {number}.")))
                .unwrap()
        };
        let sent_version = || {
            let body = alice.outbound.calls.borrow().last().unwrap().body.clone();
            let body: Value = serde_json::from_str(&body).unwrap();
            version(&body["messages"][0]["content"])
        };
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": "Version 1."}),
        );
        alice.spends("s", "one", (1, 0, 1));
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": "Version 2."}),
        );
        alice.spends("s", "two", (1, 0, 1));
        assert_eq!(sent_version(), in_next_turn, "{setting}");
        alice.outbound.answer(Ok(answer(1, 0, 1)));
        assert_eq!(
            alice.ok("compact", json!({"sessionId": "s"}))["reason"],
            "compacted"
        );
        let frozen = alice.ok("freezePrompt", json!({"sessionId": "s"}));
        assert_eq!(version(&frozen["prompt"]), after_compaction, "{setting}");
        alice.spends("s", "three", (1, 0, 1));
        assert_eq!(sent_version(), after_compaction, "{setting}");
    }
}

#[test]
fn model_settings_are_sent_to_the_model() {
    let alice = Alice::with_model();
    alice.ok(
        "configureAgent",
        json!({"maxOutputTokens": 77, "temperature": 0.5, "reasoningEffort": "low"}),
    );
    alice.spends("s", "one", (1, 0, 1));
    let request: Value = serde_json::from_str(&alice.outbound.calls.borrow()[0].body).unwrap();
    assert_eq!(request["max_tokens"], 77);
    assert_eq!(request["temperature"], 0.5);
    assert_eq!(request["reasoning_effort"], "low");
    for (body, field) in [
        (json!({"maxOutputTokens": 0}), "maxOutputTokens"),
        (json!({"maxOutputTokens": 1_000_001}), "maxOutputTokens"),
        (json!({"temperature": 2.1}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"reasoningEffort": "huge"}), "reasoningEffort"),
        (json!({"refreshPrompt": "never"}), "refreshPrompt"),
        (json!({"prices": {"input": 1}}), "prices.output"),
        (
            json!({"prices": {"input": -1, "output": 1}}),
            "prices.input",
        ),
    ] {
        let error = alice.call("configureAgent", body.clone()).unwrap_err();
        assert_eq!(error.details()["field"], field, "{body}");
    }
}

#[test]
fn failed_turns_are_counted_with_or_without_output() {
    let alice = Alice::with_model();
    alice.spends("s", "fine", (1, 0, 1));
    // The model fails immediately, breaks off during its answer, or calls tools endlessly.
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "No.")));
    alice.chat(json!({"id": "s", "message": user("at once")}));
    let half =
        ScriptedAnswer::stream("data: {\"choices\":[{\"delta\":{\"content\":\"Hal\"}}]}\n\n");
    alice.outbound.answer(Ok(half));
    alice.chat(json!({"id": "s", "message": user("half")}));
    alice.ok("configureAgent", json!({"maxSteps": 1}));
    alice
        .outbound
        .answer(calls(&[("c1", "nothing", json!({}))]));
    alice.chat(json!({"id": "s", "message": user("steps")}));
    let counts = |by: &str, more: Value| -> Vec<(i64, i64)> {
        let usage = alice.usage_by(by, more);
        let number = |one: &Value, name: &str| one[name].as_i64().unwrap();
        usage
            .iter()
            .map(|one| (number(one, "turns"), number(one, "failedTurns")))
            .collect()
    };
    assert_eq!(counts("day", json!({"sessionId": "s"})), [(4, 3)]);
    assert_eq!(counts("day", json!({})), [(4, 3)]);
    let sums = counts("model", json!({}));
    let sum = sums
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sum, (4, 3));
    let failed: Vec<bool> = alice
        .usage_by("turn", json!({}))
        .iter()
        .map(|one| one["hasFailed"].as_bool().unwrap())
        .collect();
    assert_eq!(failed, [true, true, false], "newest first");
    // The count remains after the session is deleted.
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(counts("day", json!({})), [(4, 3)]);
    alice.spends("t", "fine", (1, 0, 1));
    assert_eq!(counts("day", json!({})), [(5, 3)]);
}
