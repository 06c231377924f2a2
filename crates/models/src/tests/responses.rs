//! OpenAI's Responses: the events of an answer as parts, and the data that is returned to the
//! provider.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::line;
use crate::call_ids::CallIds;
use crate::caller_fields::{CallerFields, ProviderApi, to_stored_items, to_stored_message};
use crate::decode::Decoder;
use crate::message::ContextMessage;
use crate::{AnswerPart, ModelRequest, responses};
use base::action::Role;
use conversation::log::note::{MAX_PROVIDER_DATA_BYTES, ProviderData};

/// The parts of an answer other than its events.
fn parts(body: &str) -> Vec<String> {
    let mut decoder = Decoder::of_responses(CallIds::default());
    let mut parts = decoder.push(body.as_bytes());
    parts.extend(decoder.end());
    parts
        .iter()
        .filter(|part| !matches!(part, AnswerPart::Event(_)))
        .map(line)
        .collect()
}

fn stream(events: &[Value]) -> Vec<String> {
    let body: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    parts(&body)
}

fn unstreamed(output: &Value) -> Vec<String> {
    parts(
        &json!({"object": "response", "status": "completed", "error": null, "output": output})
            .to_string(),
    )
}

fn text(text: &str) -> Value {
    json!({"id": "msg_a", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
}

fn call() -> Value {
    json!({"id": "fc_a", "type": "function_call", "call_id": "c1", "name": "look",
        "arguments": "{\"a\":1}", "status": "completed"})
}

fn thought() -> Value {
    json!({"id": "rs_a", "type": "reasoning", "encrypted_content": "sealed",
        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]})
}

#[test]
fn an_answer_is_assembled_from_its_items() {
    assert_eq!(
        unstreamed(&json!([text("Hello!"), call()])),
        [
            "text Hello!",
            "start 0 c1 look",
            "delta 0 {\"a\":1}",
            "call 0 c1 look {\"a\":1}",
            "finish ToolCalls"
        ]
    );
    let items = json!([thought(), text("A"), text("B")]);
    let provider_data = format!("kept {}", json!({"items": items}));
    assert_eq!(
        unstreamed(&items),
        [
            "reasoning One.\n\nTwo.",
            "text A",
            "text \n\n",
            "text B",
            &provider_data,
            "finish Stop"
        ]
    );
}

#[test]
fn arguments_that_arrive_only_at_the_end_are_read() {
    let mut started = call();
    started["arguments"] = json!("");
    let end = json!({"type": "response.completed", "response": {"status": "completed",
        "usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 3}}});
    let received = stream(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": started}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": call()}),
        end,
    ]);
    assert_eq!(
        received,
        [
            "start 0 c1 look",
            "delta 0 {\"a\":1}",
            "call 0 c1 look {\"a\":1}",
            "usage 5 3, 2 cached",
            "finish ToolCalls"
        ]
    );
}

#[test]
fn a_truncated_or_failed_answer_is_an_error() {
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"});
    let received = stream(std::slice::from_ref(&delta));
    assert!(
        received.last().unwrap().starts_with("failed "),
        "{received:?}"
    );
    for error in [
        json!({"type": "error", "code": "server_error", "message": "No.", "param": null}),
        json!({"type": "response.failed", "response": {"status": "failed",
            "error": {"code": "server_error", "message": "No."}}}),
        json!({"type": "response.failed", "response": {"status": "failed", "error": null}}),
    ] {
        let received = stream(&[delta.clone(), error]);
        assert!(
            received.last().unwrap().starts_with("failed "),
            "{received:?}"
        );
    }
}

#[test]
fn too_long_fields_are_left_out_of_stored_items() {
    let image = json!({"id": "ig_a", "type": "image_generation_call", "status": "completed",
        "result": "A".repeat(1 << 17)});
    let received = unstreamed(&json!([image, text("A cat.")]));
    let provider_data = received
        .iter()
        .find(|line| line.starts_with("kept "))
        .unwrap();
    assert!(provider_data.contains("ig_a") && provider_data.len() < 1_000);
    let found = json!({"id": "fs_a", "type": "file_search_call", "status": "completed",
        "queries": ["x"], "results": [{"text": "B".repeat(MAX_PROVIDER_DATA_BYTES)}]});
    let received = unstreamed(&json!([thought(), found, text("It.")]));
    let provider_data = received
        .iter()
        .find(|line| line.starts_with("kept "))
        .unwrap();
    assert!(provider_data.contains("sealed") && provider_data.len() < 2_000);
}

fn caller(fields: Value) -> CallerFields {
    CallerFields {
        api: ProviderApi::Responses,
        in_responses: true,
        is_streamed: true,
        fields: serde_json::from_value(fields).unwrap(),
        tools: BTreeMap::new(),
        tool_list: Vec::new(),
        system: Vec::new(),
        system_texts: 0,
        cache_marks: 0,
        max_tokens: None,
        temperature: None,
        beta: None,
    }
}

fn sent(messages: &[ContextMessage]) -> Value {
    let request = ModelRequest {
        messages,
        reminder: Some("Remember."),
        ..ModelRequest::default()
    };
    let body = responses::encode(&request, "gpt-4o", &caller(json!({})));
    serde_json::from_str::<Value>(&body).unwrap()["input"].take()
}

fn kept_message(content: &str, items: &Value) -> ContextMessage {
    let calls = json!([{"id": "c9", "name": "look", "arguments": {"a": 1}}]);
    ContextMessage {
        tool_calls: serde_json::from_value(calls).unwrap(),
        provider_data: Some(Box::new(ProviderData {
            by: "openai:gpt-4o".to_owned(),
            parts: to_stored_items(&items.to_string()).unwrap(),
        })),
        ..ContextMessage::of_text(Role::Assistant, content.to_owned())
    }
}

#[test]
fn items_are_sent_back_with_their_call_ids_if_unchanged() {
    let items = json!([thought(), text("I look."), call()]);
    let mut renamed = call();
    renamed["call_id"] = json!("c9");
    assert_eq!(
        sent(&[kept_message("I look.", &items)]),
        json!([thought(), text("I look."), renamed, {"role": "user", "content": "Remember."}])
    );
    let plain = json!([
        {"role": "assistant", "content": "I [omitted]"},
        {"type": "function_call", "call_id": "c9", "name": "look", "arguments": "{\"a\":1}"},
        {"role": "user", "content": "Remember."}
    ]);
    assert_eq!(sent(&[kept_message("I [omitted]", &items)]), plain);
    let another = json!([thought(), {"type": "function_call", "call_id": "c1", "name": "buy", "arguments": "{}"}]);
    assert_eq!(sent(&[kept_message("I [omitted]", &another)]), plain);
}

#[test]
fn chat_completions_messages_convert_to_responses_items() {
    let given = json!({"role": "user", "content": [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "https://e.com/a.png", "detail": "high"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    ]});
    let message = ContextMessage {
        provider_data: Some(Box::new(ProviderData {
            by: "openai".to_owned(),
            parts: to_stored_message(&given.to_string()).unwrap(),
        })),
        ..ContextMessage::of_text(Role::User, "Look:".to_owned())
    };
    assert_eq!(
        sent(&[message]),
        json!([
            {"role": "user", "content": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "high"},
                {"type": "input_file", "file_id": "file-1"},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
            ]},
            {"role": "user", "content": "Remember."}
        ])
    );
}

#[test]
fn a_failed_tools_result_is_marked_as_an_error() {
    let failed: ContextMessage = serde_json::from_value(
        json!({"role": "tool", "content": "no", "toolCallId": "c1", "toolName": "look", "isError": true}),
    )
    .unwrap();
    assert_eq!(
        sent(&[failed])[0],
        json!({"type": "function_call_output", "call_id": "c1", "output": "Error: no"})
    );
}
