//! `buildWorkingContext` with `asTurn` returns exactly what the next turn sends.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::caching::{agent, answer, sent_requests};
use models::choice::Provider;

/// An agent with all kinds of tools, and a question that is not answered yet.
fn populated(provider: Provider) -> Alice {
    let alice = agent(provider);
    let mut bindings = alice.outbound.bindings.borrow_mut();
    bindings.push("TOOLS".to_owned());
    drop(bindings);
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."], "temperature": 0.5, "maxOutputTokens": 300}),
    );
    alice.ok(
        "defineTool",
        json!({"name": "weather", "description": "Tells the weather.", "service": "TOOLS",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}),
    );
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"id": "q", "action": "user_message", "content": "Rain?"},
            {"id": "a", "action": "agent_message", "content": "Some."},
            {"id": "r", "action": "user_message", "content": "And tomorrow?"}]}),
    );
    alice
}

fn next(alice: &Alice) -> Value {
    alice.ok(
        "buildWorkingContext",
        json!({"sessionId": "s", "asTurn": true}),
    )
}

#[test]
fn the_preview_equals_the_request_sent_for_every_provider() {
    for provider in Provider::ALL {
        let alice = populated(provider);
        let shown = next(&alice);
        alice.outbound.answer(Ok(answer(provider, "Sun.", None)));
        alice.chat(
            json!({"id": "s", "trigger": "regenerate-message", "messageId": "r", "messages": []}),
        );
        let sent = sent_requests(&alice, provider);
        assert_eq!(shown["modelInput"], sent[0], "{provider:?}");
        let tools = shown["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "weather"));
        assert!(tools.iter().any(|tool| tool["name"] == "set_context"));
    }
}

#[test]
fn previewing_the_next_request_writes_nothing() {
    let alice = populated(Provider::OpenAi);
    let before = alice.db.dump();
    next(&alice);
    assert_eq!(alice.db.dump(), before);
}
