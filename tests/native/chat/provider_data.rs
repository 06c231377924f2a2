//! Data that a provider expects back: it is returned in the next step and in the next turn, even
//! after an eviction.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{define, user};
use base::outbound::OWN_CLASS;
use base::testing::ScriptedAnswer;
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;

/// An agent whose model returns signed thinking, with the tool `look`.
fn thinking(model: &str) -> Alice {
    let alice = Alice::with_model();
    let mut settings = alice.outbound.settings.borrow_mut();
    for (name, value) in [("MODEL", model), ("ANTHROPIC_API_KEY", "k")] {
        settings.insert(name.to_owned(), value.to_owned());
    }
    drop(settings);
    let bound = OWN_CLASS.to_owned();
    alice.outbound.bindings.borrow_mut().push(bound);
    define(&alice, "look", false);
    if model.starts_with("anthropic:") {
        alice.ok("configureAgent", json!({"reasoningEffort": "low"}));
    }
    alice
}

fn events(events: &[Value]) -> ScriptedAnswer {
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    ScriptedAnswer::stream(&lines.collect::<String>())
}

/// Thinking in several chunks, a text, and a call.
fn anthropic_call() -> ScriptedAnswer {
    let start = |index: i64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: i64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10}}}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "I had "})),
        delta(
            0,
            json!({"type": "thinking_delta", "thinking": "better look."}),
        ),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, json!({"type": "redacted_thinking", "data": "aGlkZGVu"})),
        json!({"type": "content_block_stop", "index": 1}),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Let me see."})),
        json!({"type": "content_block_stop", "index": 2}),
        start(
            3,
            json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
        ),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

fn anthropic_text(text: &str) -> ScriptedAnswer {
    let message = json!({"type": "message", "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 2}});
    ScriptedAnswer::json(&message).unwrap()
}

fn completion(delta: &Value, reason: &str, more: &Value) -> ScriptedAnswer {
    let mut end = json!({"choices": [{"delta": {}, "finish_reason": reason}]});
    let fields = more.as_object().unwrap().clone();
    end.as_object_mut().unwrap().extend(fields);
    events(&[json!({"choices": [{"delta": delta}]}), end])
}

fn look_call(more: &Value) -> Value {
    let mut call = json!({"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}});
    let fields = more.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(fields);
    json!({"content": "Let me see.", "tool_calls": [call]})
}

/// Runs a turn whose object is evicted after the tool ran, before the next model call, and
/// then another turn. Returns the requests to the model: the first one, the second one from
/// the next activation, and that of the next turn.
fn requests_across_eviction(
    model: &str,
    call: ScriptedAnswer,
    text_answer: fn(&str) -> ScriptedAnswer,
) -> [Value; 3] {
    let mut alice = thinking(model);
    alice.outbound.answer(Ok(call));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "a lake")));
    alice.outbound.hangs_after_answers.set(true);
    let body = json!({"id": "s", "message": user("look")});
    let started = alice.begin(&body).unwrap();
    {
        let agent = alice.agent(&alice.db);
        let mut turn = pin!(run(&agent, started.work.unwrap()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(turn.as_mut().poll(&mut context), Poll::Pending));
    }
    alice.crash();
    alice.outbound.hangs_after_answers.set(false);
    alice.outbound.answer(Ok(text_answer("A lake.")));
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    alice.crash();
    alice.outbound.answer(Ok(text_answer("Welcome.")));
    alice.chat_text("thanks");
    let calls = alice.outbound.calls.borrow();
    let bodies = calls.iter().map(|call| call.body.as_str());
    let bodies: Vec<Value> = bodies
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    // The model, the tool, the second model request in both activations, the next turn's model.
    assert_eq!(bodies.len(), 5);
    [0, 3, 4].map(|index| bodies[index].clone())
}

#[test]
fn signed_thinking_is_sent_back_in_place() {
    let [first, second, third] = requests_across_eviction(
        "anthropic:claude-sonnet-4-5",
        anthropic_call(),
        anthropic_text,
    );
    let expected = json!([
        {"type": "thinking", "thinking": "I had better look.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    ]);
    assert_eq!(second["messages"][1]["content"], expected);
    assert_eq!(third["messages"][1]["content"], expected);
    // The thinking is sent back, so the model may continue thinking after the call.
    assert_eq!(second["thinking"], first["thinking"]);
    assert_eq!(second["thinking"]["type"], "enabled");
}

#[test]
fn unsigned_thinking_is_dropped_and_disables_thinking() {
    let call = events(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "Hm."}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    let [_, second, _] =
        requests_across_eviction("anthropic:claude-sonnet-4-5", call, anthropic_text);
    assert_eq!(second["messages"][1]["content"][0]["type"], "tool_use");
    assert!(second["thinking"].is_null());
}

#[test]
fn call_signatures_are_sent_back_with_their_calls() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let call = completion(
        &look_call(&json!({"extra_content": extra})),
        "tool_calls",
        &json!({}),
    );
    let text_answer = |text: &str| completion(&json!({"content": text}), "stop", &json!({}));
    let [_, second, third] = requests_across_eviction("openai:gemini-3-pro", call, text_answer);
    for request in [second, third] {
        let message = &request["messages"][1];
        assert_eq!(message["tool_calls"][0]["extra_content"], extra);
        assert!(message["kept"].is_null());
    }
}

#[test]
fn a_classs_model_receives_the_data_it_returned() {
    let stored = json!({"parts": [{"type": "reasoning", "text": "Hm.", "providerOptions": {"maker": {"itemId": "rs_1"}}}]});
    let call = completion(
        &look_call(&json!({})),
        "tool_calls",
        &json!({"kept": stored}),
    );
    let text_answer = |text: &str| completion(&json!({"content": text}), "stop", &json!({}));
    let [_, second, third] = requests_across_eviction("own:mock", call, text_answer);
    for request in [second, third] {
        assert_eq!(request["messages"][1]["kept"], stored);
    }
}

#[test]
fn provider_data_is_sent_only_to_its_own_model() {
    let stored = json!({"parts": []});
    let alice = thinking("own:one");
    let answer = completion(&json!({"content": "Hi."}), "stop", &json!({"kept": stored}));
    alice.outbound.answer(Ok(answer));
    alice.chat_text("hi");
    let settings = &alice.outbound.settings;
    let other = "own:two".to_owned();
    settings.borrow_mut().insert("MODEL".to_owned(), other);
    let answer = completion(&json!({"content": "Well."}), "stop", &json!({}));
    alice.outbound.answer(Ok(answer));
    alice.chat_text("and?");
    let calls = alice.outbound.calls.borrow();
    let body: Value = serde_json::from_str(&calls[1].body).unwrap();
    assert_eq!(body["messages"][1]["content"], "Hi.");
    assert!(body["messages"][1]["kept"].is_null());
}

#[test]
fn too_long_provider_data_is_dropped_and_the_turn_continues() {
    let stored = json!({"parts": ["x".repeat(70_000)]});
    let call = completion(
        &look_call(&json!({})),
        "tool_calls",
        &json!({"kept": stored}),
    );
    let text_answer = |text: &str| completion(&json!({"content": text}), "stop", &json!({}));
    let [_, second, _] = requests_across_eviction("own:mock", call, text_answer);
    assert!(second["messages"][1]["kept"].is_null());
}

/// A file is data: a provider's own text and ids are accepted only from the provider, or from a
/// sender who trusts the file.
#[test]
fn an_untrusted_file_cannot_supply_provider_data() {
    let stored = json!({"parts": [{"type": "text", "length": 3, "providerOptions": {"maker": {"itemId": "msg_1"}}}]});
    let alice = thinking("own:mock");
    let answer = completion(&json!({"content": "Hi."}), "stop", &json!({"kept": stored}));
    alice.outbound.answer(Ok(answer));
    alice.chat_text("hi");
    let file = alice.export("s").unwrap();
    assert!(file.contains("msg_1"));
    for (allows, expected) in [(false, false), (true, true)] {
        let other = thinking("own:mock");
        let imported = if allows {
            other.import("s", &file)
        } else {
            other.import_untrusted("s", &file)
        };
        imported.unwrap();
        let answer = completion(&json!({"content": "Well."}), "stop", &json!({}));
        other.outbound.answer(Ok(answer));
        other.chat_text("and?");
        let calls = other.outbound.calls.borrow();
        assert_eq!(calls[0].body.contains("msg_1"), expected);
    }
}

/// Estimates do not count provider data, so a small window gets little of it.
#[test]
fn a_small_window_limits_the_provider_data_sent_back() {
    let parts = |bytes: usize| json!({"parts": ["x".repeat(bytes)]});
    for (bytes, is_sent_back) in [(11_000, true), (17_000, false)] {
        let alice = thinking("own:mock");
        alice.ok("configureAgent", json!({"maxContextTokens": 16_000}));
        let answer = completion(
            &json!({"content": "Hi."}),
            "stop",
            &json!({"kept": parts(bytes)}),
        );
        alice.outbound.answer(Ok(answer));
        alice.chat_text("hi");
        let answer = completion(&json!({"content": "Well."}), "stop", &json!({}));
        alice.outbound.answer(Ok(answer));
        alice.chat_text("and?");
        let calls = alice.outbound.calls.borrow();
        let body: Value = serde_json::from_str(&calls[1].body).unwrap();
        assert_eq!(body["messages"][1]["kept"].is_object(), is_sent_back);
    }
}
