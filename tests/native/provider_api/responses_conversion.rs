//! The content of Responses besides texts and calls is converted as far as Chat Completions can
//! express it.

use serde_json::{Value, json};

use super::{completion, headers, in_session, unstreamed_text};
use crate::Alice;
use base::testing::ScriptedAnswer;
use models::caller_fields::ProviderApi;

const API: ProviderApi = ProviderApi::Responses;

fn request_body(input: Value) -> Value {
    json!({"model": "m", "input": input})
}

fn stream(chunks: &[Value]) -> ScriptedAnswer {
    let lines = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    ScriptedAnswer::stream(&lines.collect::<String>())
}

fn chunk(delta: Value, logprobs: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": null}]})
}

fn end(usage: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage,
        "service_tier": "flex"})
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 9, "total_tokens": 19,
        "completion_tokens_details": {"reasoning_tokens": 7}})
}

#[test]
fn a_refusal_is_returned_whole_and_streamed() {
    let alice = Alice::with_model();
    let refused = json!({"role": "assistant", "content": null, "refusal": "I won't."});
    alice.outbound.answer(completion(refused, "stop"));
    let (_, answer) = alice
        .complete_with(API, &headers(&[]), &request_body(json!("hi")))
        .unwrap();
    let part = json!({"type": "refusal", "refusal": "I won't."});
    assert_eq!(answer["output"][0]["content"], json!([part]));

    let pieces = ["I ", "won't."].map(|text| chunk(json!({"refusal": text}), Value::Null));
    let [first, second] = pieces;
    alice
        .outbound
        .answer(Ok(stream(&[first, second, end(usage())])));
    let mut body = request_body(json!("ho"));
    body["stream"] = json!(true);
    let received = alice.stream_api(API, &in_session("s"), &body);
    let kinds: Vec<&str> = received
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        &kinds[2..],
        [
            "response.output_item.added",
            "response.content_part.added",
            "response.refusal.delta",
            "response.refusal.delta",
            "response.refusal.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert_eq!(
        received[3]["part"],
        json!({"type": "refusal", "refusal": ""})
    );
    assert_eq!(received[6]["refusal"], "I won't.");
    let response = &received[9]["response"];
    assert_eq!(response["output"][0]["content"], json!([part]));
    assert_eq!(
        response["usage"]["output_tokens_details"]["reasoning_tokens"],
        7
    );
    assert_eq!(response["service_tier"], "flex");
}

#[test]
fn logprobs_and_annotations_come_with_their_text() {
    let alice = Alice::with_model();
    let token =
        |text: &str| json!({"token": text, "logprob": -0.5, "bytes": null, "top_logprobs": []});
    let place = json!({"url": "https://e.com", "title": "E", "start_index": 0, "end_index": 2});
    let mut flat = place.clone();
    flat["type"] = json!("url_citation");
    let cited = json!({"annotations": [{"type": "url_citation", "url_citation": place}]});
    alice.outbound.answer(Ok(stream(&[
        chunk(
            json!({"content": "Hel"}),
            json!({"content": [token("Hel")]}),
        ),
        chunk(json!({"content": "lo"}), json!({"content": [token("lo")]})),
        chunk(cited, Value::Null),
        end(usage()),
    ])));
    let mut body = request_body(json!("hi"));
    body["stream"] = json!(true);
    body["include"] = json!([
        "message.output_text.logprobs",
        "reasoning.encrypted_content"
    ]);
    body["top_logprobs"] = json!(2);
    let received = alice.stream_api(API, &headers(&[]), &body);
    let sent = alice.last_sent();
    assert_eq!(sent["logprobs"], true);
    assert_eq!(sent["top_logprobs"], 2);
    let find = |kind: &str| received.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(
        find("response.output_text.delta")["logprobs"],
        json!([token("Hel")])
    );
    let added = find("response.output_text.annotation.added");
    assert_eq!(added["annotation"], flat);
    assert_eq!(added["annotation_index"], 0);
    let part = &find("response.completed")["response"]["output"][0]["content"][0];
    assert_eq!(part["logprobs"], json!([token("Hel"), token("lo")]));
    assert_eq!(part["annotations"], json!([flat]));
}

#[test]
fn images_files_and_audio_convert_to_chat_completions() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Nice."));
    let content = json!([
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "high"},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    ]);
    let body = request_body(json!([{"role": "user", "content": content}]));
    let (session, _) = alice.complete_with(API, &headers(&[]), &body).unwrap();
    assert_eq!(
        alice.last_sent()["messages"][0]["content"],
        json!([
            {"type": "text", "text": "Look:"},
            {"type": "image_url", "image_url": {"url": "https://e.com/a.png", "detail": "high"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
        ])
    );
    assert_eq!(alice.shown_in(&session)[0]["parts"][0]["text"], "Look:");
}

#[test]
fn fields_without_an_equivalent_are_refused_by_name() {
    let alice = Alice::with_model();
    let result = |part: Value| {
        json!([{"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [part]}])
    };
    let image = json!({"type": "input_image", "image_url": "https://e.com/a.png"});
    let of_address = json!([{"type": "input_file", "file_url": "https://e.com/a.pdf"}]);
    let tool = json!({"type": "function", "name": "look", "parameters": {}, "output_schema": {}});
    for (name, value, field) in [
        (
            "include",
            json!(["message.input_image.image_url"]),
            "include[0]",
        ),
        (
            "text",
            json!({"format": {"type": "grammar"}}),
            "text.format.type",
        ),
        ("input", result(image), "input[2].output[0]"),
        (
            "input",
            json!([{"role": "user", "content": of_address}]),
            "input[0].content[0]",
        ),
        ("tools", json!([tool]), "tools[0].output_schema"),
    ] {
        let mut body = request_body(json!("hi"));
        body[name] = value;
        let refused = alice.complete_with(API, &headers(&[]), &body).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
    }
    assert_eq!(alice.session_count(), 0);
}
