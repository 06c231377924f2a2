//! A request at the base URL is an ordinary turn: stored before the model is called, limited,
//! counted, recorded, reported and fitted to the model's window.

use serde_json::{Value, json};

use super::{assistant, chat, headers, in_session, unstreamed_text, user};
use crate::Alice;
use base::outbound::CallFailure;
use base::testing::ScriptedAnswer;
use models::caller_fields::ProviderApi;
use provider_api::anthropic::count::count;
use provider_api::calls::ApiFamily;
use provider_api::refusal::render;

const API: ProviderApi = ProviderApi::ChatCompletions;

#[test]
fn the_question_is_stored_before_the_model_call_and_after_a_failure() {
    let alice = Alice::with_model();
    let unreachable = CallFailure::Unreachable {
        cause: "no route".to_owned(),
    };
    let started = alice
        .begin_api(API, &in_session("s"), &chat(json!([user("hi")])))
        .unwrap();
    assert_eq!(alice.shown_in("s").len(), 1);
    assert_eq!(alice.sent_bodies().len(), 0);
    alice.outbound.answer(Err(unreachable));
    alice.run_work(started.work.unwrap());
    assert_eq!(alice.shown_in("s")[0]["role"], "user");
}

#[test]
fn a_turn_over_the_limits_is_refused_with_the_apis_status() {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"limits": {"turnsPerMinute": 1}}));
    alice.outbound.answer(unstreamed_text("Hello."));
    alice.complete(&in_session("s"), chat(json!([user("hi")])));
    let result = alice.begin_api(API, &in_session("t"), &chat(json!([user("ho")])));
    let refused = result.err().unwrap();
    assert_eq!(refused.code.name(), "rate_limited");
    assert_eq!(alice.sent_bodies().len(), 1);
    for family in [ApiFamily::OpenAi, ApiFamily::Anthropic] {
        let reply = render(family, &refused);
        assert_eq!(reply.status, 429);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body["error"]["type"], "rate_limit_error");
    }
}

#[test]
fn a_turn_is_counted_recorded_and_reported() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(unstreamed_text("Hello."));
    alice.complete(&in_session("s"), chat(json!([user("hi")])));
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["usage"]["inputTokens"], 10);
    assert_eq!(session["usage"]["outputTokens"], 2);
    let turns = alice.turns("s");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["model"], "openai:m");
    assert_eq!(turns[0]["steps"].as_array().unwrap().len(), 1);
    assert_eq!(alice.callback_rows(), 1);
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "")));
    alice.run_callbacks();
    let calls = alice.sent_bodies();
    let reply = calls.last().unwrap();
    assert_eq!(reply["message"]["parts"][0]["text"], "Hello.");
}

#[test]
fn open_sockets_of_the_session_see_the_turn() {
    let alice = Alice::with_model();
    alice.audience.are_there.set(true);
    alice.outbound.answer(unstreamed_text("Hello."));
    alice.complete(&in_session("s"), chat(json!([user("hi")])));
    let frames: Vec<Value> = alice
        .audience
        .frames
        .borrow()
        .iter()
        .map(|frame| serde_json::from_str(frame).unwrap())
        .collect();
    assert_eq!(frames[0]["type"], "cf_agent_chat_messages");
    let last = frames.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(last[1]["parts"][0]["text"], "Hello.");
}

#[test]
fn a_history_longer_than_the_window_is_cut_to_fit() {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"maxContextTokens": 2_000}));
    let words = "some words to fill the window ".repeat(20);
    let mut history = Vec::new();
    for number in 0..30 {
        history.push(user(&format!("Question {number}: {words}")));
        history.push(assistant(&format!("Answer {number}: {words}")));
    }
    history.push(user("And now?"));
    alice.outbound.answer(unstreamed_text("Fine."));
    let (session, answer) = alice.complete(&headers(&[]), chat(Value::Array(history)));
    assert_eq!(answer["choices"][0]["message"]["content"], "Fine.");
    let sent = alice.last_sent()["messages"].as_array().unwrap().clone();
    assert!(sent.len() < 30, "{}", sent.len());
    assert_eq!(sent.last().unwrap()["content"], "And now?");
    let path = alice.ok("getPathLength", json!({"sessionId": session}));
    assert_eq!(path["length"], 62, "{path}");
}

#[test]
fn count_tokens_includes_the_named_sessions_memory() {
    let alice = Alice::with_anthropic();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "defineBlock",
        json!({"label": "note", "kind": "writable", "sessionId": "s"}),
    );
    let text = "Likes tea. ".repeat(20);
    alice.ok(
        "setBlock",
        json!({"label": "note", "sessionId": "s", "content": text}),
    );
    let agent = alice.agent(&alice.db);
    let body = json!({"model": "claude-x", "messages": [user("hi")]}).to_string();
    let counted = |address: Option<&str>, pairs: &[(&str, &str)]| {
        let address = address.map(|id| base::ids::Id::parse(id.to_owned()).unwrap());
        let headers = headers(pairs);
        let counting = count(&agent, address.as_ref(), &headers, body.as_bytes());
        let answer: Value =
            serde_json::from_str(&base::testing::wait_for(counting).unwrap()).unwrap();
        answer["input_tokens"].as_i64().unwrap()
    };
    let alone = counted(None, &[]);
    assert!(counted(Some("s"), &[]) > alone + 40);
    assert!(counted(None, &[("x-session-id", "s")]) > alone + 40);
    assert!(counted(Some("s"), &[("x-session-memory", "off")]) <= alone);
}
