//! Summaries by a service binding (`summarize`), whose answers are scripted.

use serde_json::{Value, json};

use crate::Alice;
use base::outbound::{CallFailure, Endpoint};
use base::testing::ScriptedAnswer;

/// An agent with much to summarize.
fn with_long_conversation() -> Alice {
    let alice = Alice::with_session();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("SUMMARISER".to_owned());
    let texts: Vec<String> = (0..10)
        .map(|number| format!("{number} {}", "word ".repeat(50)))
        .collect();
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    alice.ok(
        "configureCompaction",
        json!({"protectHead": 1, "tailTokenBudget": 0}),
    );
    alice
}

fn served() -> Alice {
    let alice = with_long_conversation();
    alice.ok(
        "configureAgent",
        json!({"summaryModel": "openai:small", "summarize": {"service": "SUMMARISER"}}),
    );
    alice
}

fn compact(alice: &Alice) -> Value {
    alice.ok("compact", json!({"sessionId": "s"}))
}

#[test]
fn a_service_writes_the_summary_instead_of_a_model() {
    let alice = served();
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"summary": "They said ten numbers."}),
    ));
    let outcome = compact(&alice);
    assert_eq!(outcome["reason"], "compacted", "{outcome}");
    assert_eq!(outcome["compaction"]["summary"], "They said ten numbers.");
    let calls = alice.outbound.calls.borrow();
    assert_eq!(calls.len(), 1);
    let Endpoint::Service { binding, path } = &calls[0].endpoint else {
        panic!("{:?}", calls[0].endpoint);
    };
    assert_eq!(
        (binding.as_str(), path.as_str()),
        ("SUMMARISER", "summarize")
    );
    let request: Value = serde_json::from_str(&calls[0].body).unwrap();
    assert_eq!(request["agent"], "alice");
    assert!(request["prompt"].as_str().unwrap().contains("5 word"));
    assert!(request["maxTokens"].as_i64().unwrap() > 0);
    drop(calls);
    // Its tokens are estimated and counted under its own name.
    let usage = alice.ok("getUsage", json!({"by": "model"}))["usage"].clone();
    assert_eq!(usage.as_array().unwrap().len(), 1);
    assert_eq!(usage[0]["model"], "service:SUMMARISER");
    assert!(usage[0]["inputTokens"].as_i64().unwrap() > 100);
}

type Answer = fn() -> Result<ScriptedAnswer, CallFailure>;

#[test]
fn an_invalid_service_answer_loses_nothing_and_is_not_quoted() {
    let answers: [Answer; 6] = [
        || ScriptedAnswer::json(&json!({"summary": 7})),
        || ScriptedAnswer::json(&json!(["secret"])),
        || Ok(ScriptedAnswer::text(500, "secret")),
        || Ok(ScriptedAnswer::text(200, "secret")),
        || ScriptedAnswer::json(&json!({"summary": "secret".repeat(50_000)})),
        || {
            Err(CallFailure::TimedOut {
                silence_ms: 120_000,
            })
        },
    ];
    for answer in answers {
        let alice = served();
        let before = alice.events();
        alice.outbound.answer(answer());
        let outcome = compact(&alice);
        assert_eq!(outcome["reason"], "summariser_failed", "{outcome}");
        assert_eq!(outcome["error"]["code"], "model_failed");
        assert!(!outcome.to_string().contains("secret"), "{outcome}");
        assert_eq!(alice.events(), before);
    }
}

#[test]
fn an_empty_object_overrides_the_deployed_service() {
    let alice = with_long_conversation();
    let error = alice
        .call(
            "configureAgent",
            json!({"summarize": {"service": "NOBODY"}}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "not_configured");
    alice.outbound.settings.borrow_mut().insert(
        "AGENT_DEFAULTS".to_owned(),
        json!({"summarize": {"service": "SUMMARISER"}}).to_string(),
    );
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["summarize"]["service"], "SUMMARISER");
    let config = alice.ok("configureAgent", json!({"summarize": {}}));
    assert_eq!(config["summarize"], Value::Null);
    assert_eq!(config["origins"]["summarize"], "agent");
}
