//! Definitions and calls of tools: headers, secrets, time and size.

use serde_json::{Value, json};

use super::turns::{calls, text_answer, user};
use crate::Alice;
use base::testing::ScriptedAnswer;

const SECRET: &str = "hunter2-hunter2";

pub fn alice() -> Alice {
    let alice = Alice::with_model();
    let settings = [
        ("TOOL_SECRETS", "KEY=https://tools.example"),
        ("KEY", SECRET),
        (
            "TOOL_ORIGINS",
            "https://tools.example https://other.example",
        ),
    ];
    for (name, value) in settings {
        let mut there = alice.outbound.settings.borrow_mut();
        there.insert(name.to_owned(), value.to_owned());
    }
    alice
}

pub fn tool(more: &Value) -> Value {
    let mut tool =
        json!({"name": "echo", "description": "A tool.", "url": "https://tools.example/t"});
    tool.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    tool
}

#[test]
fn only_the_tool_receives_its_headers_and_secret() {
    let alice = alice();
    let headers = json!({"Authorization": "Bearer secret:KEY", "x-team": "blue"});
    let shown = alice.ok("defineTool", tool(&json!({"headers": headers})));
    let headers = json!({"authorization": "Bearer secret:KEY", "x-team": "blue"});
    assert_eq!(shown["headers"], headers);
    assert_eq!(
        alice.ok("listTools", json!({}))["tools"][0]["headers"],
        headers
    );
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice.outbound.answer(Ok(ScriptedAnswer::text(
        401,
        &format!("Wrong key: {SECRET}"),
    )));
    alice.outbound.answer(text_answer("It failed."));
    let chunks = alice.chat_text("go");
    let calls = alice.outbound.calls.borrow();
    let sent = |name: &str| {
        let mut found = calls[1].headers.iter().filter(|(sent, _)| sent == name);
        found.next().map(|(_, value)| value.as_str())
    };
    assert_eq!(sent("authorization"), Some("Bearer hunter2-hunter2"));
    assert_eq!(sent("x-team"), Some("blue"));
    assert!(sent("idempotency-key").is_some());
    // The tool repeated the secret: neither the model, nor the client, nor a table has it.
    assert!(calls[2].body.contains("Wrong key: [secret]"));
    for reply in [&calls[1].body, &calls[2].body, &json!(chunks).to_string()] {
        assert!(!reply.contains(SECRET), "{reply}");
    }
    assert!(!alice.db.dump().contains(SECRET));
}

#[test]
fn a_forbidden_secret_is_refused_on_definition_and_on_call() {
    let alice = alice();
    let with = |value: &str| json!({"headers": {"authorization": value}});
    for (more, code) in [
        (with("secret:OPENAI_API_KEY"), "forbidden"),
        (with("secret:SESSION_AGENT_TOKEN"), "forbidden"),
        (with("secret:UNKNOWN"), "forbidden"),
        (with("Bearer plain"), "invalid_request"),
        (json!({"headers": {"host": "a"}}), "invalid_request"),
        (json!({"headers": {"a": 1}}), "invalid_request"),
        (
            json!({"url": "https://other.example/", "headers": {"x": "secret:KEY"}}),
            "forbidden",
        ),
    ] {
        assert_eq!(alice.refused("defineTool", tool(&more)), code, "{more}");
    }
    alice.outbound.bindings.borrow_mut().push("S".to_owned());
    let service =
        json!({"name": "x", "description": "", "service": "S", "headers": {"x": "secret:KEY"}});
    assert_eq!(alice.refused("defineTool", service), "forbidden");

    alice.ok("defineTool", tool(&with("secret:KEY")));
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert(
        "TOOL_SECRETS".to_owned(),
        "KEY=https://other.example".to_owned(),
    );
    drop(settings);
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice.outbound.answer(text_answer("It failed."));
    alice.chat_text("go");
    let calls = alice.outbound.calls.borrow();
    assert_eq!(calls.len(), 2, "the tool was not called");
    assert!(
        calls[1]
            .body
            .contains("only sent to https://other.example,")
    );
}

#[test]
fn a_definition_sets_timeout_and_size_within_limits() {
    let alice = alice();
    for (field, most) in [("timeoutMs", 300_000), ("maxOutputBytes", 524_288)] {
        for (value, is_accepted) in [(0, false), (1, true), (most, true), (most + 1, false)] {
            let outcome = alice.call("defineTool", tool(&json!({field: value})));
            assert_eq!(outcome.is_ok(), is_accepted, "{field}: {value}");
            match outcome {
                Ok(shown) => assert_eq!(shown[field], value),
                Err(error) => assert_eq!(error.details()["field"], field),
            }
        }
    }
    let limits = |more: &Value| {
        alice.ok("defineTool", tool(more));
        alice.outbound.calls.borrow_mut().clear();
        alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "ok")));
        alice.outbound.answer(text_answer("Done."));
        alice.chat_text("go");
        let limits = alice.outbound.calls.borrow()[1].limits;
        (limits.silence_ms, limits.total_ms, limits.max_bytes)
    };
    assert_eq!(limits(&json!({})), (30_000, 300_000, 1_048_576));
    assert_eq!(
        limits(&json!({"timeoutMs": 90_000, "maxOutputBytes": 10})),
        (90_000, 90_000, 10)
    );
}

#[test]
fn an_approval_applies_to_the_headers_at_that_time() {
    let alice = alice();
    let define = |team: &str| {
        let more = json!({"needsApproval": true, "headers": {"x-team": team}});
        alice.ok("defineTool", tool(&more));
    };
    define("blue");
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice.chat_text("go");
    define("red");
    let mut message = alice.shown()[1].clone();
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    alice.outbound.answer(text_answer("Nothing was done."));
    alice.chat(json!({"id": "s", "messages": [user("go"), message]}));
    let calls = alice.outbound.calls.borrow();
    assert_eq!(calls.len(), 2, "the tool was not called");
    assert!(calls[1].body.contains("the approval is not valid"));
}
