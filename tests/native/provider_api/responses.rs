//! OpenAI's Responses API: input and output items, and answers that are referenced by id.

use serde_json::{Value, json};

use super::{headers, in_session, remember, set_context, unstreamed_calls, unstreamed_text};
use crate::Alice;
use crate::chat::turns::text_answer;
use base::error::Error;
use base::testing::wait_for;
use models::caller_fields::ProviderApi;
use provider_api::calls::ApiHeaders;
use provider_api::openai::responses_stored::{delete, get};

impl Alice {
    fn respond_as(&self, headers: &ApiHeaders, body: &Value) -> Result<(String, Value), Error> {
        self.complete_with(ProviderApi::Responses, headers, body)
    }

    fn respond(&self, body: &Value) -> (String, Value) {
        self.respond_as(&headers(&[]), body).unwrap()
    }
}

fn request_body(input: Value) -> Value {
    json!({"model": "m", "input": input})
}

fn tool() -> Value {
    json!({"type": "function", "name": "look", "description": "Looks.", "strict": true,
        "parameters": {"type": "object", "properties": {}}})
}

#[test]
fn a_response_is_an_output_of_items() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let mut body = request_body(json!("hi"));
    body["instructions"] = json!("Be kind.");
    body["max_output_tokens"] = json!(50);
    body["metadata"] = json!({"a": "b"});
    body["text"] = json!({"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": true}});
    body["reasoning"] = json!({"effort": "low"});
    body["client_metadata"] = json!({"x-codex-installation-id": "c"});
    let (_, answer) = alice.respond(&body);
    assert_eq!(answer["object"], "response");
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["output"][0]["content"][0]["text"], "Hello!");
    assert_eq!(answer["usage"]["total_tokens"], 12);
    assert_eq!(answer["instructions"], "Be kind.");
    assert_eq!(answer["metadata"], json!({"a": "b"}));
    let sent = alice.last_sent();
    assert_eq!(
        sent["messages"][0],
        json!({"role": "system", "content": "Be kind."})
    );
    assert_eq!(sent["max_completion_tokens"], 50);
    assert_eq!(sent["reasoning_effort"], "low");
    assert_eq!(sent["response_format"]["json_schema"]["name"], "x");
}

#[test]
fn a_response_continues_from_the_previous_one() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (first, answer) = alice.respond(&request_body(json!("hi")));
    let id = answer["id"].clone();
    alice.outbound.answer(unstreamed_text("Fine."));
    let mut body = request_body(
        json!([{"role": "user", "content": [{"type": "input_text", "text": "How are you?"}]}]),
    );
    body["previous_response_id"] = id.clone();
    let (second, answer) = alice.respond(&body);
    assert_eq!(first, second);
    assert_eq!(answer["previous_response_id"], id);
    assert_eq!(alice.last_sent()["messages"].as_array().unwrap().len(), 3);
    // Continuing from the first response again creates a branch.
    alice.outbound.answer(unstreamed_text("Well."));
    body["input"] = json!("And now?");
    alice.respond(&body);
    assert_eq!(alice.last_sent()["messages"].as_array().unwrap().len(), 3);
    body["previous_response_id"] = json!("resp_nobody's");
    let refused = alice.respond_as(&headers(&[]), &body).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("previous_response_id"));
}

#[test]
fn an_item_may_be_referenced_by_id() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (first, answer) = alice.respond(&request_body(json!("hi")));
    let reference = json!({"type": "item_reference", "id": answer["output"][0]["id"]});
    let next = |reference: Value| {
        request_body(
            json!([{"role": "user", "content": "hi"}, reference, {"role": "user", "content": "And now?"}]),
        )
    };
    alice.outbound.answer(unstreamed_text("Fine."));
    let (second, _) = alice.respond(&next(reference.clone()));
    assert_eq!(first, second);
    assert_eq!(alice.last_sent()["messages"][1]["content"], "Hello!");
    let id = answer["id"].as_str().unwrap().to_owned();
    let agent = alice.agent(&alice.db);
    delete(&agent, None, &id).unwrap();
    for item in [
        reference,
        json!({"type": "item_reference", "id": "msg_nobody's_0"}),
    ] {
        let refused = alice.respond_as(&headers(&[]), &next(item)).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("input[1]"));
    }
}

#[test]
fn a_call_referenced_by_id_belongs_to_the_text_before_it() {
    let alice = Alice::with_model();
    let call = ("call_1", "look", json!({}));
    alice.outbound.answer(unstreamed_calls(&[call]));
    let mut body = request_body(json!("Where?"));
    body["tools"] = json!([tool()]);
    let (first, answer) = alice.respond(&body);
    alice.outbound.answer(unstreamed_text("There."));
    body["input"] = json!([
        {"role": "user", "content": "Where?"},
        {"type": "item_reference", "id": answer["output"][0]["id"]},
        {"type": "function_call_output", "call_id": "call_1", "output": "a lake"}]);
    let (second, answer) = alice.respond(&body);
    assert_eq!(first, second);
    assert_eq!(answer["output"][0]["content"][0]["text"], "There.");
}

#[test]
fn a_conversation_continues_with_tool_results() {
    let alice = Alice::with_model();
    let call = ("call_1", "look", json!({}));
    alice.outbound.answer(unstreamed_calls(&[call]));
    let mut body = request_body(json!("Where?"));
    body["conversation"] = json!("s");
    body["tools"] = json!([tool()]);
    alice.respond(&body);
    alice.outbound.answer(unstreamed_text("There."));
    body["input"] =
        json!([{"type": "function_call_output", "call_id": "call_1", "output": "a lake"}]);
    let (session, answer) = alice.respond(&body);
    assert_eq!(session, "s");
    assert_eq!(answer["output"][0]["content"][0]["text"], "There.");
    assert_eq!(alice.last_sent()["messages"].as_array().unwrap().len(), 3);
    assert_eq!(alice.shown_in("s").len(), 2);
}

#[test]
fn a_conversation_is_a_session() {
    let alice = Alice::with_model();
    for (text, sent) in [("one", 1), ("two", 3)] {
        alice.outbound.answer(unstreamed_text("Yes."));
        let mut body = request_body(json!(text));
        body["conversation"] = json!({"id": "s"});
        let (session, _) = alice.respond(&body);
        assert_eq!(session, "s");
        assert_eq!(
            alice.last_sent()["messages"].as_array().unwrap().len(),
            sent
        );
    }
}

#[test]
fn the_session_header_precedes_the_conversation() {
    let alice = Alice::with_model();
    let mut body = request_body(json!("one"));
    body["conversation"] = json!("trip");
    for text in ["One.", "Two."] {
        alice.outbound.answer(unstreamed_text(text));
        let (session, _) = alice.respond_as(&in_session("s"), &body).unwrap();
        assert_eq!(session, "s");
        body["input"] = json!("two");
    }
    assert_eq!(alice.shown_in("s").len(), 4);
    assert_eq!(alice.last_sent()["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn client_tool_calls_are_items_and_internal_ones_are_hidden() {
    let alice = Alice::with_model();
    remember(&alice);
    let (id, name, arguments) = set_context("call_m", "tea");
    alice.outbound.answer(unstreamed_calls(&[
        (&id, &name, arguments),
        ("call_1", "look", json!({"a": 1})),
    ]));
    let mut body = request_body(json!("Where?"));
    body["tools"] = json!([tool()]);
    let (_, answer) = alice.respond(&body);
    let output = answer["output"].as_array().unwrap();
    assert_eq!(output.len(), 1);
    assert_eq!(output[0]["type"], "function_call");
    assert_eq!(output[0]["arguments"], "{\"a\":1}");
    alice.outbound.answer(unstreamed_text("There."));
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "a lake"});
    let mut next = request_body(json!([result]));
    next["previous_response_id"] = answer["id"].clone();
    next["tools"] = json!([tool()]);
    let (_, answer) = alice.respond(&next);
    assert_eq!(answer["output"][0]["content"][0]["text"], "There.");
    // The same, as a history of items.
    alice.outbound.answer(unstreamed_text("Again."));
    let mut request = request_body(
        json!([{"role": "user", "content": "Where?"}, output[0], result,
        {"role": "assistant", "content": [{"type": "output_text", "text": "There.", "annotations": []}]},
        {"role": "user", "content": "Sure?"}]),
    );
    request["tools"] = json!([tool()]);
    alice.respond(&request);
    assert_eq!(alice.session_count(), 1);
}

#[test]
fn a_stored_response_can_be_read_and_deleted() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let (session, answer) = alice.respond(&request_body(json!("hi")));
    let id = answer["id"].as_str().unwrap().to_owned();
    let agent = alice.agent(&alice.db);
    let read: Value = serde_json::from_str(&wait_for(get(&agent, None, &id)).unwrap()).unwrap();
    assert_eq!(read["id"], answer["id"]);
    assert_eq!(read["output"][0]["content"], answer["output"][0]["content"]);
    assert!(
        delete(&agent, None, &id)
            .unwrap()
            .contains("\"deleted\":true")
    );
    assert!(wait_for(get(&agent, None, &id)).is_err());
    assert_eq!(alice.shown_in(&session).len(), 2);

    alice.outbound.answer(unstreamed_text("Hello!"));
    let mut body = request_body(json!("hi"));
    body["store"] = json!(false);
    let (_, answer) = alice.respond(&body);
    assert!(wait_for(get(&agent, None, answer["id"].as_str().unwrap())).is_err());
}

#[test]
fn a_streamed_response_emits_each_item() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    let mut body = request_body(json!("hi"));
    body["stream"] = json!(true);
    let received = alice.stream_api(ProviderApi::Responses, &in_session("s"), &body);
    let kinds: Vec<&str> = received
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    for (number, event) in received.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    assert_eq!(
        received[8]["response"]["output"][0]["content"][0]["text"],
        "Hello!"
    );
}

#[test]
fn unsupported_fields_are_refused_by_name() {
    let alice = Alice::with_model();
    for (name, value) in [
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
        ("tools", json!([{"type": "web_search"}])),
        ("input", json!([{"type": "item_reference", "id": "x"}])),
    ] {
        let mut body = request_body(json!("hi"));
        body[name] = value;
        let refused = alice.respond_as(&headers(&[]), &body).unwrap_err();
        assert!(
            refused
                .field
                .as_deref()
                .unwrap_or_default()
                .starts_with(name),
            "{name}"
        );
    }
    assert_eq!(alice.session_count(), 0);
}
