//! OpenAI's Responses API with a model that also uses Responses: everything is passed through.

use serde_json::{Value, json};

use super::{headers, in_session, remember};
use crate::Alice;
use base::error::Error;
use base::outbound::CallFailure;
use base::testing::{ScriptedAnswer, wait_for};
use models::caller_fields::ProviderApi;
use provider_api::openai::responses_stored::get;

const API: ProviderApi = ProviderApi::Responses;

fn native() -> Alice {
    Alice::with_responses("m")
}

impl Alice {
    fn respond_native(&self, body: &Value) -> (String, Value) {
        self.complete_with(API, &headers(&[]), body).unwrap()
    }

    fn get_refusal(&self, body: &Value) -> Error {
        self.complete_with(API, &headers(&[]), body).unwrap_err()
    }

    fn get_native(&self, id: &Value) -> Value {
        let agent = self.agent(&self.db);
        let read = wait_for(get(&agent, None, id.as_str().unwrap())).unwrap();
        serde_json::from_str(&read).unwrap()
    }
}

/// The fields of a provider's answer other than its output.
fn response(status: &str, output: &Value) -> Value {
    json!({
        "id": "resp_upstream",
        "object": "response",
        "created_at": 7,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": "What the provider got.",
        "model": "m-2026",
        "output": output,
        "previous_response_id": null,
        "service_tier": "flex",
        "tools": [],
        "new_field": {"a": 1},
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 12
        }
    })
}

fn completed(output: Value) -> Result<ScriptedAnswer, CallFailure> {
    Ok(ScriptedAnswer::json(&response("completed", &output)).unwrap())
}

fn events(events: &[Value]) -> Result<ScriptedAnswer, CallFailure> {
    let lines = events.iter().enumerate().map(|(number, event)| {
        let mut event = event.clone();
        event["sequence_number"] = json!(number);
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    });
    Ok(ScriptedAnswer::stream(&lines.collect::<String>()))
}

fn message(text: &str) -> Value {
    json!({"id": "msg_a", "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]})
}

fn thought(encrypted: &str) -> Value {
    json!({"id": "rs_a", "type": "reasoning", "encrypted_content": encrypted,
        "summary": [{"type": "summary_text", "text": "Hm."}]})
}

fn search() -> Value {
    json!({"id": "ws_a", "type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "rust"}})
}

fn call(call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": "fc_a", "type": "function_call", "status": "completed", "call_id": call_id,
        "name": name, "arguments": arguments})
}

fn request_body(input: Value) -> Value {
    json!({"model": "m", "input": input})
}

fn look_tool() -> Value {
    json!({"type": "function", "name": "look", "description": "Looks.", "strict": true,
        "parameters": {"type": "object", "properties": {}}})
}

/// The output items of a conversation's first answer.
fn middle(input: &Value) -> &[Value] {
    &input.as_array().unwrap()[1..4]
}

/// The events of an answer with reasoning, a search and a text.
fn streamed() -> Vec<Value> {
    let head = response("in_progress", &json!([]));
    let text = message("Found it.");
    let mut events = vec![
        json!({"type": "response.created", "response": head}),
        json!({"type": "response.in_progress", "response": head}),
    ];
    let at = |index: i64, id: &str| json!({"output_index": index, "item_id": id});
    let with = |kind: &str, mut event: Value, more: Value| {
        event["type"] = json!(kind);
        for (name, value) in more.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    };
    let item = |kind: &str, index: i64, item: &Value| json!({"type": kind, "output_index": index, "item": item});
    let (added, done) = ("response.output_item.added", "response.output_item.done");
    events.extend([
        item(added, 0, &json!({"id": "rs_a", "type": "reasoning", "summary": []})),
        with(
            "response.reasoning_summary_part.added",
            at(0, "rs_a"),
            json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        ),
        with(
            "response.reasoning_summary_text.delta",
            at(0, "rs_a"),
            json!({"summary_index": 0, "delta": "Hm.", "obfuscation": "x"}),
        ),
        item(done, 0, &thought("sealed")),
        item(added, 1, &json!({"id": "ws_a", "type": "web_search_call", "status": "in_progress"})),
        with("response.web_search_call.searching", at(1, "ws_a"), json!({})),
        with("response.web_search_call.completed", at(1, "ws_a"), json!({})),
        item(done, 1, &search()),
        item(
            added,
            2,
            &json!({"id": "msg_a", "type": "message", "status": "in_progress", "role": "assistant", "content": []}),
        ),
        with(
            "response.output_text.delta",
            at(2, "msg_a"),
            json!({"content_index": 0, "delta": "Found it.", "logprobs": []}),
        ),
        item(done, 2, &text),
        json!({"type": "response.completed",
            "response": response("completed", &json!([thought("sealed"), search(), text]))}),
    ]);
    events
}

#[test]
fn a_request_is_forwarded_with_all_fields() {
    let alice = native();
    alice.outbound.answer(completed(json!([message("Hello!")])));
    let mut body = request_body(json!("hi"));
    let more = json!({
        "include": ["web_search_call.action.sources"],
        "text": {"verbosity": "low", "format": {"type": "text"}},
        "reasoning": {"effort": "low", "summary": "auto"},
        "max_output_tokens": 50,
        "max_tool_calls": 3,
        "truncation": "auto",
        "prompt_cache_key": "k",
        "store": false,
        "metadata": {"a": "b"},
        "client_metadata": {"c": "d"},
        "something_new": [1]
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body["instructions"] = json!("Be kind.");
    let tools =
        json!([{"type": "web_search", "user_location": {"type": "approximate"}}, look_tool()]);
    body["tools"] = tools.clone();
    let (_, answer) = alice.respond_native(&body);
    let sent = alice.last_sent();
    for (name, value) in more.as_object().unwrap() {
        assert_eq!(sent[name], *value, "{name}");
    }
    assert_eq!(sent["model"], "m");
    assert_eq!(sent["instructions"], "Be kind.");
    assert_eq!(sent["input"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!(sent["tools"], tools);
    assert_eq!(sent["stream"], false);
    let url = match &alice.outbound.calls.borrow().last().unwrap().endpoint {
        base::outbound::Endpoint::Url(url) => url.clone(),
        place => format!("{place:?}"),
    };
    assert_eq!(url, "https://api.openai.com/v1/responses");
    // The answer is returned with all of its fields.
    let mut expected = response("completed", &json!([message("Hello!")]));
    expected["id"] = answer["id"].clone();
    expected["instructions"] = json!("Be kind.");
    expected["output"][0]["id"] = answer["output"][0]["id"].clone();
    assert_eq!(answer, expected);
    assert_ne!(answer["id"], "resp_upstream");
}

#[test]
fn a_stream_is_forwarded_event_by_event() {
    let alice = native();
    alice.outbound.answer(events(&streamed()));
    let mut body = request_body(json!("search"));
    body["stream"] = json!(true);
    body["include"] = json!(["reasoning.encrypted_content"]);
    body["tools"] = json!([{"type": "web_search"}]);
    let received = alice.stream_api(API, &in_session("s"), &body);
    let sent = streamed();
    assert_eq!(received.len(), sent.len());
    let name = received[0]["response"]["id"].as_str().unwrap();
    let name = name.strip_prefix("resp_").unwrap().to_owned();
    for (number, (received, sent)) in received.iter().zip(&sent).enumerate() {
        let mut expected = sent.to_string();
        for (id, place) in [("rs", 0), ("ws", 1), ("msg", 2)] {
            expected =
                expected.replace(&format!("\"{id}_a\""), &format!("\"{id}_{name}_{place}\""));
        }
        let mut expected: Value =
            serde_json::from_str(&expected.replace("resp_upstream", &format!("resp_{name}")))
                .unwrap();
        expected["sequence_number"] = json!(number);
        if expected.get("response").is_some() {
            expected["response"]["instructions"] = Value::Null;
        }
        let is_in_progress = expected["response"]["status"] == "in_progress";
        if is_in_progress {
            expected["response"]["usage"] = received["response"]["usage"].clone();
        }
        assert_eq!(*received, expected);
    }
    // The chat contains the reasoning and the text.
    let shown = alice.shown_in("s");
    let parts = shown[1]["parts"].to_string();
    assert!(
        parts.contains("Hm.") && parts.contains("Found it."),
        "{parts}"
    );
}

#[test]
fn reasoning_and_provider_calls_are_sent_back_unchanged() {
    let alice = native();
    let output = json!([thought("sealed"), search(), message("Found it.")]);
    alice.outbound.answer(completed(output.clone()));
    let mut body = request_body(json!("search"));
    body["tools"] = json!([{"type": "web_search"}]);
    let (first, answer) = alice.respond_native(&body);
    alice.outbound.answer(completed(json!([message("Yes.")])));
    body["input"] = json!("Sure?");
    body["previous_response_id"] = answer["id"].clone();
    let (second, next) = alice.respond_native(&body);
    assert_eq!(first, second);
    assert_eq!(next["previous_response_id"], answer["id"]);
    let expected = json!([
        {"role": "user", "content": "search"}, output[0], output[1], output[2],
        {"role": "user", "content": "Sure?"}]);
    assert_eq!(alice.last_sent()["input"], expected);
    assert!(alice.last_sent().get("previous_response_id").is_none());

    // The same as a history of items, which starts no branch.
    alice.outbound.answer(completed(json!([message("Yes.")])));
    let mut history = vec![json!({"role": "user", "content": "search"})];
    history.extend(answer["output"].as_array().unwrap().iter().cloned());
    history.push(json!({"role": "user", "content": "And now?"}));
    let (third, _) = alice.respond_native(&request_body(json!(history)));
    assert_eq!(first, third);
    let sent = alice.last_sent();
    assert_eq!(middle(&sent["input"]), middle(&expected));

    // The same with the items' ids.
    alice.outbound.answer(completed(json!([message("Yes.")])));
    let mut history = vec![json!({"role": "user", "content": "search"})];
    let items = answer["output"].as_array().unwrap().iter();
    history.extend(items.map(|item| json!({"type": "item_reference", "id": item["id"]})));
    history.push(json!({"role": "user", "content": "By ids?"}));
    let (fourth, _) = alice.respond_native(&request_body(json!(history)));
    assert_eq!(first, fourth);
    assert_eq!(middle(&alice.last_sent()["input"]), middle(&expected));
}

#[test]
fn an_answer_is_stored_with_all_of_its_items() {
    let alice = native();
    let output = json!([search(), message("Found."), call("call_1", "look", "{}")]);
    alice.outbound.answer(completed(output));
    let mut body = request_body(json!("search"));
    body["tools"] = json!([{"type": "web_search"}, look_tool()]);
    let (_, answer) = alice.respond_native(&body);
    let read = alice.get_native(&answer["id"]);
    assert_eq!(read["output"], answer["output"]);
    assert_eq!(read["output"].as_array().unwrap().len(), 3);
    assert_eq!(read["status"], "completed");
}

#[test]
fn internal_calls_are_hidden_and_the_rest_keeps_its_order() {
    let alice = native();
    remember(&alice);
    let arguments = r#"{"label":"memory","content":"tea"}"#;
    alice.outbound.answer(completed(json!([
        thought("one"),
        call("call_m", "set_context", arguments)
    ])));
    alice.outbound.answer(completed(json!([
        thought("two"),
        message("Noted."),
        call("call_1", "look", "{}")
    ])));
    let mut body = request_body(json!("I like tea."));
    body["tools"] = json!([look_tool()]);
    let (_, answer) = alice.respond_native(&body);
    let output = answer["output"].as_array().unwrap();
    let kinds: Vec<&str> = output
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["reasoning", "reasoning", "message", "function_call"]
    );
    assert_eq!(answer["usage"]["total_tokens"], 24);
    assert_eq!(
        answer["usage"]["output_tokens_details"]["reasoning_tokens"],
        2
    );
    // The second request contains the reasoning before the call, and the call's result.
    let sent = alice.last_sent();
    assert_eq!(sent["input"][1], thought("one"));
    assert_eq!(sent["input"][2], call("call_m", "set_context", arguments));
    assert_eq!(sent["input"][3]["type"], "function_call_output");
    assert_eq!(sent["tools"].as_array().unwrap().last(), Some(&look_tool()));
    let tools = sent["tools"].as_array().unwrap();
    let memory_tool = tools
        .iter()
        .find(|tool| tool["name"] == "set_context")
        .unwrap();
    assert_eq!(memory_tool["strict"], false);

    alice.outbound.answer(completed(json!([message("There.")])));
    let mut next = request_body(json!([{"type": "function_call_output", "call_id": "call_1",
        "output": [{"type": "input_image", "image_url": "https://e.com/a.png"}]}]));
    next["previous_response_id"] = answer["id"].clone();
    next["tools"] = json!([look_tool()]);
    let (_, answer) = alice.respond_native(&next);
    assert_eq!(answer["output"][0]["content"][0]["text"], "There.");
    let sent = alice.last_sent();
    let sent = sent["input"].as_array().unwrap();
    assert_eq!(sent[sent.len() - 1], next["input"][0]);
    assert_eq!(sent[sent.len() - 2], call("call_1", "look", "{}"));
}

#[test]
fn two_model_requests_form_one_streamed_answer() {
    let alice = native();
    remember(&alice);
    let arguments = r#"{"label":"memory","content":"tea"}"#;
    let mut first = streamed();
    let memory_call = call("call_m", "set_context", arguments);
    first.truncate(6);
    first.extend([
        json!({"type": "response.output_item.added", "output_index": 1, "item": memory_call}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_a", "delta": arguments}),
        json!({"type": "response.function_call_arguments.done", "output_index": 1, "item_id": "fc_a", "arguments": arguments}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": memory_call}),
        json!({"type": "response.completed", "response": response("completed", &json!([]))}),
    ]);
    alice.outbound.answer(events(&first));
    alice.outbound.answer(events(&streamed()));
    let mut body = request_body(json!("search"));
    body["stream"] = json!(true);
    let received = alice.stream_api(API, &headers(&[]), &body);
    assert!(!json!(received).to_string().contains("set_context"));
    assert!(
        !json!(received).to_string().contains("sealed"),
        "it was not requested"
    );
    for (number, event) in received.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let places: Vec<i64> = received
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["output_index"].as_i64().unwrap())
        .collect();
    assert_eq!(places, [0, 1, 2, 3]);
    let added = received
        .iter()
        .filter(|event| event["type"] == "response.created");
    assert_eq!(added.count(), 1);
    let end = received.last().unwrap();
    assert_eq!(end["type"], "response.completed");
    assert_eq!(end["response"]["output"].as_array().unwrap().len(), 4);
    assert_eq!(end["response"]["usage"]["input_tokens"], 20);
}

#[test]
fn encrypted_reasoning_is_requested() {
    let alice = Alice::with_responses("gpt-5-mini");
    for (include, expected) in [
        (Value::Null, json!(["reasoning.encrypted_content"])),
        (
            json!(["message.output_text.logprobs"]),
            json!([
                "message.output_text.logprobs",
                "reasoning.encrypted_content"
            ]),
        ),
        (
            json!(["reasoning.encrypted_content"]),
            json!(["reasoning.encrypted_content"]),
        ),
    ] {
        let is_requested = include.to_string().contains("encrypted");
        alice
            .outbound
            .answer(completed(json!([thought("sealed"), message("Hi.")])));
        let mut body = json!({"model": "gpt-5-mini", "input": "hi"});
        body["include"] = include;
        let (_, answer) = alice.respond_native(&body);
        assert_eq!(alice.last_sent()["include"], expected);
        let shown = answer["output"][0].get("encrypted_content");
        assert_eq!(shown.is_some(), is_requested);
    }
}

#[test]
fn unknown_provider_calls_are_left_to_the_caller() {
    let alice = native();
    let custom = json!({"id": "ctc_a", "type": "custom_tool_call", "status": "completed",
        "call_id": "call_c", "name": "apply_patch", "input": "*** Begin"});
    alice.outbound.answer(completed(json!([custom])));
    let mut body = request_body(json!("patch"));
    body["tools"] = json!([{"type": "custom", "name": "apply_patch"}]);
    let (first, answer) = alice.respond_native(&body);
    assert_eq!(answer["output"][0]["input"], "*** Begin");
    let result = json!({"type": "custom_tool_call_output", "call_id": "call_c", "output": "Done"});
    for input in [
        json!([result]),
        json!([{"role": "user", "content": "patch"}, answer["output"][0], result]),
    ] {
        alice
            .outbound
            .answer(completed(json!([message("Patched.")])));
        let mut next = request_body(input.clone());
        next["tools"] = body["tools"].clone();
        if input.as_array().unwrap().len() == 1 {
            next["previous_response_id"] = answer["id"].clone();
        }
        let (second, _) = alice.respond_native(&next);
        assert_eq!(first, second);
        let expected = json!([{"role": "user", "content": "patch"}, custom, result]);
        assert_eq!(alice.last_sent()["input"], expected);
    }
}

#[test]
fn a_request_for_approval_keeps_its_id() {
    let alice = native();
    let approval_request = json!({"id": "mcpr_a", "type": "mcp_approval_request", "name": "buy",
        "server_label": "shop", "arguments": "{}"});
    alice.outbound.answer(completed(json!([approval_request])));
    let (first, answer) = alice.respond_native(&request_body(json!("buy")));
    assert_eq!(answer["output"][0], approval_request);
    let approval =
        json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_a", "approve": true});
    alice
        .outbound
        .answer(completed(json!([message("Bought.")])));
    let history = json!([{"role": "user", "content": "buy"},
        {"type": "item_reference", "id": "mcpr_a"}, approval]);
    let (second, _) = alice.respond_native(&request_body(history));
    assert_eq!(first, second);
    let expected = json!([{"role": "user", "content": "buy"}, approval_request, approval]);
    assert_eq!(alice.last_sent()["input"], expected);
}

#[test]
fn a_foreign_history_is_sent_with_its_items() {
    let alice = native();
    alice.outbound.answer(completed(json!([message("Yes.")])));
    let unsealed = json!({"id": "rs_b", "type": "reasoning", "summary": []});
    let history = json!([{"role": "user", "content": "search"}, unsealed, thought("sealed"), search(),
        message("Found."), {"role": "user", "content": "Sure?"}]);
    let (session, _) = alice.respond_native(&request_body(history.clone()));
    let expected = json!([history[0], history[2], history[3], history[4], history[5]]);
    assert_eq!(alice.last_sent()["input"], expected);
    let shown = alice.shown_in(&session);
    assert_eq!(shown[1]["metadata"]["source"], "client");
}

#[test]
fn without_storage_unencrypted_reasoning_is_omitted() {
    let alice = native();
    let unsealed = json!({"id": "rs_b", "type": "reasoning", "summary": []});
    alice
        .outbound
        .answer(completed(json!([unsealed, message("Hi.")])));
    let (_, answer) = alice.respond_native(&request_body(json!("hi")));
    alice.outbound.answer(completed(json!([message("Yes.")])));
    let mut body = request_body(json!("And now?"));
    body["previous_response_id"] = answer["id"].clone();
    body["store"] = json!(false);
    alice.respond_native(&body);
    let expected = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "And now?"}]);
    assert_eq!(alice.last_sent()["input"], expected);
}

#[test]
fn a_failure_is_reported_by_the_providers_own_event() {
    let alice = native();
    let mut failed = response("failed", &json!([]));
    failed["error"] = json!({"code": "server_error", "message": "Sorry."});
    let mut sent = streamed();
    sent.truncate(6);
    sent.push(json!({"type": "response.failed", "response": failed}));
    alice.outbound.answer(events(&sent));
    let mut body = request_body(json!("hi"));
    body["stream"] = json!(true);
    let received = alice.stream_api(API, &headers(&[]), &body);
    assert_eq!(received.len(), 7);
    assert_eq!(received[6]["type"], "response.failed");
    assert_eq!(received[6]["response"]["error"], failed["error"]);
    assert_eq!(received[6]["response"]["output"][0]["type"], "reasoning");

    alice
        .outbound
        .answer(Ok(ScriptedAnswer::json(&failed).unwrap()));
    let (_, answer) = alice.respond_native(&request_body(json!("ho")));
    assert_eq!(answer["status"], "failed");
    assert_eq!(answer["error"], failed["error"]);
    alice.outbound.answer(Ok(ScriptedAnswer::text(
        400,
        r#"{"error":{"message":"No.","type":"invalid_request_error","param":"input","code":"bad"}}"#,
    )));
    let refused = alice.get_refusal(&request_body(json!("no")));
    assert_eq!(refused.details()["status"], 400);
}

#[test]
fn a_truncated_answer_is_incomplete() {
    let alice = native();
    let mut cut = response("incomplete", &json!([message("Hel")]));
    cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::json(&cut).unwrap()));
    let (_, answer) = alice.respond_native(&request_body(json!("hi")));
    assert_eq!(answer["status"], "incomplete");
    assert_eq!(answer["incomplete_details"], cut["incomplete_details"]);
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let alice = native();
    for (name, value, field) in [
        ("background", json!(true), "background"),
        (
            "context_management",
            json!([{"type": "compaction", "compact_threshold": 1000}]),
            "context_management",
        ),
        (
            "input",
            json!([{"type": "compaction", "encrypted_content": "x"}]),
            "input[0]",
        ),
        (
            "input",
            json!([{"type": "item_reference", "id": "rs_x_0"}]),
            "input[0]",
        ),
        ("input", json!(""), "input"),
        ("tools", json!([{"name": "look"}]), "tools[0].type"),
        ("include", json!([1]), "include[0]"),
    ] {
        let mut body = request_body(json!("hi"));
        body[name] = value;
        assert_eq!(alice.get_refusal(&body).field.as_deref(), Some(field));
    }
    assert_eq!(alice.session_count(), 0);
}

#[test]
fn images_and_files_are_forwarded_as_written() {
    let alice = native();
    let content = json!([
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "high"},
        {"type": "input_file", "file_url": "https://e.com/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    ]);
    let user_message = json!({"role": "user", "content": content});
    alice.outbound.answer(completed(json!([message("Nice.")])));
    alice.respond_native(&request_body(json!([user_message])));
    assert_eq!(alice.last_sent()["input"], json!([user_message]));
}
