//! Where a request's history continues: recognized sessions, branches, repeated requests.

use serde_json::{Value, json};

use super::{
    assistant, chat, claude, headers, in_session, tool, unstreamed_calls, unstreamed_text, user,
};
use crate::Alice;
use base::testing::wait_for;
use models::caller_fields::ProviderApi;

#[test]
fn a_history_is_matched_to_its_session() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (first, _) = alice.complete(&headers(&[]), chat(json!([user("hi")])));
    alice.outbound.answer(unstreamed_text("Fine."));
    let history = json!([user("hi"), assistant("Hello!"), user("How are you?")]);
    let (second, _) = alice.complete(&headers(&[]), chat(history));
    assert_eq!(first, second);
    assert_eq!(alice.session_count(), 1);
    assert_eq!(alice.shown_in(&first).len(), 4);
    let sent = alice.last_sent()["messages"].clone();
    assert_eq!(sent.as_array().unwrap().len(), 3);

    // A question alone is not a history.
    alice.outbound.answer(unstreamed_text("Hello again!"));
    let (third, _) = alice.complete(&headers(&[]), chat(json!([user("hi")])));
    assert_ne!(third, first);
}

#[test]
fn content_blocks_and_whitespace_do_not_change_the_match() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!\n"));
    let (first, _) = alice.complete(&headers(&[]), chat(json!([user("hi ")])));
    alice.outbound.answer(unstreamed_text("Fine."));
    let history = json!([
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}]},
        user("How are you?")
    ]);
    let (second, _) = alice.complete(&headers(&[]), chat(history));
    assert_eq!(first, second);
}

#[test]
fn a_diverging_history_creates_a_branch() {
    let alice = Alice::with_model();
    for text in ["Hello!", "Fine."] {
        alice.outbound.answer(unstreamed_text(text));
    }
    alice.complete(&in_session("s"), chat(json!([user("hi")])));
    let history = json!([user("hi"), assistant("Hello!"), user("How are you?")]);
    alice.complete(&in_session("s"), chat(history));
    alice.outbound.answer(unstreamed_text("A lake."));
    let other = json!([user("hi"), assistant("Hello!"), user("What is that?")]);
    let (session, _) = alice.complete(&headers(&[]), chat(other));
    assert_eq!(session, "s");
    let texts: Vec<String> = (alice.shown_in("s").iter())
        .map(|message| {
            message["parts"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(texts[..3], ["hi", "Hello!", "What is that?"]);
    let first = alice.shown_in("s")[1]["id"].clone();
    let branches = alice.ok("getBranches", json!({"sessionId": "s", "messageId": first}));
    assert_eq!(branches["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn a_repeated_question_gets_a_sibling_answer() {
    let alice = Alice::with_model();
    for text in ["Hello!", "Hi!"] {
        alice.outbound.answer(unstreamed_text(text));
        alice.complete(&in_session("s"), chat(json!([user("hi")])));
    }
    let question = alice.shown_in("s")[0]["id"].clone();
    let branches = alice.ok(
        "getBranches",
        json!({"sessionId": "s", "messageId": question}),
    );
    assert_eq!(branches["messages"].as_array().unwrap().len(), 2);
    assert_eq!(alice.shown_in("s").len(), 2);
}

#[test]
fn with_stored_history_only_the_newest_message_is_needed() {
    let alice = Alice::with_model();
    let stored = headers(&[("x-session-id", "s"), ("x-session-history", "stored")]);
    for (text, sent) in [("one", 1), ("two", 3), ("three", 5)] {
        alice.outbound.answer(unstreamed_text("Yes."));
        alice.complete(&stored, chat(json!([user(text)])));
        let messages = alice.last_sent()["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), sent, "{text}");
    }
}

#[test]
fn with_stored_history_the_same_text_may_repeat() {
    let alice = Alice::with_model();
    let stored = headers(&[("x-session-id", "s"), ("x-session-history", "stored")]);
    for (text, sent) in [("yes", 1), ("two", 3), ("yes", 5), ("yes", 7)] {
        alice.outbound.answer(unstreamed_text("Yes."));
        alice.complete(&stored, chat(json!([user(text)])));
        let messages = alice.last_sent()["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), sent, "{text}");
    }
    assert_eq!(alice.shown_in("s").len(), 8);
}

#[test]
fn with_stored_history_a_tool_result_is_enough() {
    let alice = Alice::with_model();
    let stored = headers(&[("x-session-id", "s"), ("x-session-history", "stored")]);
    let call = ("call_1", "look", json!({}));
    alice.outbound.answer(unstreamed_calls(&[call]));
    let request = |message: Value| {
        let mut body = chat(json!([message]));
        body["tools"] = json!([tool("look")]);
        body
    };
    alice.complete(&stored, request(user("Where?")));
    alice.outbound.answer(unstreamed_text("There."));
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "a lake"});
    let (_, answer) = alice.complete(&stored, request(result));
    assert_eq!(answer["choices"][0]["message"]["content"], "There.");
    assert_eq!(alice.last_sent()["messages"].as_array().unwrap().len(), 3);
    assert_eq!(alice.shown_in("s").len(), 2);
}

#[test]
fn a_new_sessions_history_is_imported_as_unverified() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Welcome back."));
    let call = json!({"role": "assistant", "content": "Looking.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "a lake"});
    let history = json!([
        user("hi"),
        call,
        result,
        assistant("A lake."),
        user("Thanks.")
    ]);
    let (session, _) = alice.complete(&headers(&[]), chat(history.clone()));
    let shown = alice.shown_in(&session);
    let roles: Vec<&str> = shown
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "assistant", "user", "assistant"]
    );
    assert_eq!(shown[1]["metadata"]["source"], "client");
    assert_eq!(shown[2]["metadata"]["source"], "client");
    assert!(
        shown[4]
            .get("metadata")
            .is_none_or(|it| it.get("source").is_none())
    );
    let sent = alice.last_sent()["messages"].clone();
    assert_eq!(
        sent[1]["tool_calls"][0]["function"]["arguments"],
        "{\"a\":1}"
    );
    assert_eq!(sent[2]["content"], "a lake");
    assert_eq!(sent.as_array().unwrap().len(), 5);
}

#[test]
fn a_repeated_request_joins_its_running_turn() {
    let alice = Alice::with_model();
    let body = chat(json!([user("hi")]));
    let api = ProviderApi::ChatCompletions;
    let first = alice.begin_api(api, &headers(&[]), &body).unwrap();
    let second = alice.begin_api(api, &headers(&[]), &body).unwrap();
    assert!(second.work.is_none());
    assert_eq!(first.session_id, second.session_id);
    alice.outbound.answer(unstreamed_text("Hello!"));
    alice.run_work(first.work.unwrap());
    let (one, other) = (
        wait_for(first.listener.whole()),
        wait_for(second.listener.whole()),
    );
    assert_eq!(one.unwrap(), other.unwrap());
    assert_eq!(alice.sent_bodies().len(), 1);
}

#[test]
fn another_request_during_the_sessions_turn_is_refused() {
    let alice = Alice::with_model();
    let api = ProviderApi::ChatCompletions;
    let first = alice
        .begin_api(api, &in_session("s"), &chat(json!([user("hi")])))
        .unwrap();
    let refused = alice.begin_api(api, &in_session("s"), &chat(json!([user("ho")])));
    assert_eq!(refused.err().unwrap().code.name(), "turn_in_progress");
    alice.outbound.answer(unstreamed_text("Hello!"));
    alice.run_work(first.work.unwrap());
}

#[test]
fn an_interrupted_turn_is_joined_by_the_same_request() {
    let mut alice = Alice::with_model();
    let body = chat(json!([user("hi")]));
    let api = ProviderApi::ChatCompletions;
    let first = alice.begin_api(api, &in_session("s"), &body).unwrap();
    drop(first.work);
    alice.crash();
    let again = alice.begin_api(api, &in_session("s"), &body).unwrap();
    alice.outbound.answer(unstreamed_text("Hello!"));
    alice.run_work(again.work.unwrap());
    let answer = wait_for(again.listener.whole()).unwrap();
    assert!(answer.contains("Hello!"), "{answer}");
    assert_eq!(alice.shown_in("s").len(), 2);
}

#[test]
fn a_request_with_an_idempotency_key_gets_its_answer_again() {
    let alice = Alice::with_model();
    let keyed = headers(&[("idempotency-key", "k-1")]);
    let body = chat(json!([user("hi")]));
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (session, first) = alice.complete(&keyed, body.clone());
    let (again, second) = alice.complete(&keyed, body.clone());
    assert_eq!(session, again);
    assert_eq!(
        first["choices"][0]["message"]["content"],
        second["choices"][0]["message"]["content"]
    );
    assert_eq!(second["usage"]["prompt_tokens"], 10);
    assert_eq!(alice.sent_bodies().len(), 1);
    alice.outbound.answer(unstreamed_text("Hello anew!"));
    let (other, _) = alice.complete(&headers(&[("idempotency-key", "k-2")]), body);
    assert_ne!(other, session);
}

#[test]
fn a_deleted_answer_is_not_replayed() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (session, _) = alice.complete(&headers(&[]), chat(json!([user("hi")])));
    alice.ok("deleteSession", json!({"sessionId": session}));
    alice.outbound.answer(unstreamed_text("Fine."));
    let history = json!([user("hi"), assistant("Hello!"), user("How are you?")]);
    let (other, _) = alice.complete(&headers(&[]), chat(history));
    assert_ne!(other, session);
}

#[test]
fn an_empty_user_message_is_refused_with_its_index() {
    let alice = Alice::with_model();
    let image = json!({"type": "image_url", "image_url": {"url": "https://e.com/a.png"}});
    for (api, body, field) in [
        (
            ProviderApi::ChatCompletions,
            chat(json!([user("")])),
            "messages[0].content",
        ),
        (
            ProviderApi::ChatCompletions,
            chat(
                json!([user("hi"), assistant("Hello!"), user(" \n"), {"role": "system", "content": "x"}]),
            ),
            "messages[2].content",
        ),
        (
            ProviderApi::Messages,
            claude(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}])),
            "messages[0].content",
        ),
        (
            ProviderApi::Responses,
            json!({"model": "m", "input": ""}),
            "input",
        ),
        (
            ProviderApi::Responses,
            json!({"model": "m", "input": [user("hi"), user("")]}),
            "input[1].content",
        ),
    ] {
        let refused = alice.complete_with(api, &headers(&[]), &body).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
        assert_eq!(refused.code.status(), 400);
    }
    assert_eq!(alice.session_count(), 0);
    alice.outbound.answer(unstreamed_text("A lake."));
    alice.complete(
        &headers(&[]),
        chat(json!([{"role": "user", "content": [image]}])),
    );
}
