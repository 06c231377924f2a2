//! Undocumented quirks of servers, one test for each.

use serde_json::{Value, json};

use super::received;
use crate::choice::Provider;

fn stream(chunks: &[Value]) -> String {
    let events: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    format!("{events}data: [DONE]\n\n")
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn openai(chunks: &[Value]) -> Vec<String> {
    received(Provider::OpenAi, &[stream(chunks).as_bytes()])
}

fn workers_ai(chunks: &[Value]) -> Vec<String> {
    received(Provider::WorkersAi, &[stream(chunks).as_bytes()])
}

fn unstreamed(provider: Provider, value: &Value) -> Vec<String> {
    received(provider, &[value.to_string().as_bytes()])
}

fn calls(received: &[String]) -> Vec<&str> {
    received
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("call "))
        .collect()
}

#[test]
fn gemini_gives_every_parallel_call_index_zero() {
    let call = |id: &str| json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}]});
    let received = openai(&[delta(call("a")), delta(call("b"))]);
    assert_eq!(calls(&received), ["call 0 a t {}", "call 1 b t {}"]);
}

#[test]
fn gemini_sends_calls_without_an_index_and_with_an_empty_id() {
    let call = |n: i64| json!({"tool_calls": [{"id": "", "function": {"name": "t", "arguments": format!("{{\"n\":{n}}}")}}]});
    let received = openai(&[delta(call(1)), delta(call(2))]);
    assert_eq!(
        calls(&received),
        ["call 0 call_0 t {\"n\":1}", "call 1 call_1 t {\"n\":2}"]
    );
}

#[test]
fn ollama_finishes_with_stop_despite_calls() {
    let received = openai(&[
        delta(
            json!({"content": "", "tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "t", "arguments": "{}"}}]}),
        ),
        json!({"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}),
    ]);
    assert_eq!(calls(&received), ["call 0 call_1 t {}"]);
    assert_eq!(received.last().unwrap(), "finish ToolCalls");
}

#[test]
fn deepseek_sends_reasoning_in_its_own_field() {
    let received = openai(&[
        delta(json!({"content": null, "reasoning_content": "hm"})),
        delta(json!({"content": "yes", "reasoning_content": null})),
    ]);
    assert_eq!(received, ["reasoning hm", "text yes", "finish Stop"]);
}

#[test]
fn reasoning_in_both_fields_is_read_once() {
    let received = openai(&[delta(json!({"reasoning": "hm", "reasoning_content": "hm"}))]);
    assert_eq!(received, ["reasoning hm", "finish Stop"]);
}

#[test]
fn mistral_sends_content_blocks_instead_of_text() {
    let received = openai(&[delta(json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"}
    ]}))]);
    assert_eq!(received, ["reasoning hm", "text yes", "finish Stop"]);
}

#[test]
fn a_refusal_is_shown_as_text() {
    let received = openai(&[
        delta(json!({"refusal": "I can't."})),
        json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}),
    ]);
    assert_eq!(received, ["text I can't.", "finish ContentFilter"]);
}

#[test]
fn azure_starts_with_a_chunk_without_choices() {
    let received = openai(&[
        json!({"choices": [], "prompt_filter_results": []}),
        delta(json!({"content": "a"})),
    ]);
    assert_eq!(received, ["text a", "finish Stop"]);
}

#[test]
fn an_error_inside_a_stream_is_classified_and_not_quoted() {
    let received = openai(&[
        delta(json!({"content": "a"})),
        json!({"error": {"message": "sk-secret", "type": "server_error", "code": null}}),
        delta(json!({"content": "b"})),
    ]);
    assert_eq!(
        received,
        [
            "text a",
            "failed The OpenAI-compatible endpoint reported an error in its answer (`server_error`)."
        ]
    );
}

#[test]
fn an_error_with_status_200_is_a_failure() {
    for body in [
        json!({"error": {"message": "x", "type": "server_error"}}),
        json!({"errors": [{"message": "x", "code": "server_error"}], "success": false}),
    ] {
        let received = unstreamed(Provider::WorkersAi, &body);
        assert_eq!(
            received,
            ["failed Workers AI reported an error in its answer (`server_error`)."]
        );
    }
}

#[test]
fn a_stream_with_a_finish_reason_may_end_without_done() {
    let text =
        stream(&[json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})]);
    let text = text.replace("data: [DONE]\n\n", "");
    assert_eq!(
        received(Provider::OpenAi, &[text.as_bytes()]),
        ["text a", "finish Stop"]
    );
}

#[test]
fn unexpected_bodies_are_failures() {
    for (body, sentence) in [
        ("", "sent an empty answer"),
        (" \n", "sent an empty answer"),
        ("{}", "sent an answer without content"),
        ("[]", "sent an answer without content"),
        ("{\"choices\":", "sent an answer that is not valid JSON"),
        ("<html></html>", "ended its answer early"),
        (
            "data: {nonsense\n\n",
            "sent an event that is not valid JSON",
        ),
        ("data: 5\n\n", "ended its answer early"),
    ] {
        assert_eq!(
            received(Provider::OpenAi, &[body.as_bytes()]),
            [format!("failed The OpenAI-compatible endpoint {sentence}.")],
            "{body}"
        );
    }
}

#[test]
fn workers_ai_may_return_parsed_json_as_text() {
    let received = unstreamed(
        Provider::WorkersAi,
        &json!({"response": {"city": "Lisbon"}}),
    );
    assert_eq!(received, ["text {\"city\":\"Lisbon\"}", "finish Stop"]);
    let received = workers_ai(&[json!({"response": "n = "}), json!({"response": 7})]);
    assert_eq!(received, ["text n = ", "text 7", "finish Stop"]);
}

#[test]
fn workers_ai_may_send_calls_without_ids() {
    let received = workers_ai(&[json!({"response": "", "tool_calls": [
        {"name": "t", "arguments": {"a": 1}}, {"name": "t", "arguments": "{}"}, {"name": "u"}
    ]})]);
    assert_eq!(
        calls(&received),
        [
            "call 0 call_0 t {\"a\":1}",
            "call 1 call_1 t {}",
            "call 2 call_2 u {}"
        ]
    );
    assert_eq!(received.last().unwrap(), "finish ToolCalls");
}

#[test]
fn workers_ai_duplicates_in_both_shapes_are_read_once() {
    let chunk = json!({"response": "a", "choices": [{"index": 0, "delta": {"content": "a"}}]});
    assert_eq!(workers_ai(&[chunk]), ["text a", "finish Stop"]);
}

#[test]
fn workers_ai_may_answer_in_openais_shape() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    ]}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let received = unstreamed(Provider::WorkersAi, &body);
    assert_eq!(calls(&received), ["call 0 x t {}"]);
    assert_eq!(received.last().unwrap(), "finish ToolCalls");
}

#[test]
fn workers_ai_over_rest_is_wrapped_in_an_envelope() {
    let body = json!({"result": {"response": "a"}, "success": true, "errors": [], "messages": []});
    assert_eq!(
        unstreamed(Provider::WorkersAi, &body),
        ["text a", "finish Stop"]
    );
}

#[test]
fn unknown_anthropic_events_are_ignored() {
    let text = include_str!("../recorded/anthropic_text.txt").replace(
        "event: ping\ndata: {\"type\": \"ping\"}",
        "event: tomorrow\ndata: {\"type\": \"tomorrow\", \"index\": 0}",
    );
    let received = received(Provider::Anthropic, &[text.as_bytes()]);
    assert_eq!(received.last().unwrap(), "finish Stop");
}

#[test]
fn anthropic_may_redact_its_thinking() {
    let body = json!({"type": "message", "content": [
        {"type": "redacted_thinking", "data": "EmwKAhgB"}, {"type": "text", "text": "a"}
    ], "stop_reason": "refusal", "usage": {"input_tokens": 1, "output_tokens": 2}});
    assert_eq!(
        unstreamed(Provider::Anthropic, &body),
        [
            "text a",
            "kept {\"thoughts\":[{\"at\":0,\"block\":{\"data\":\"EmwKAhgB\",\"type\":\"redacted_thinking\"}}]}",
            "usage 1 2",
            "finish ContentFilter"
        ]
    );
}

#[test]
fn a_split_surrogate_does_not_lose_the_answer() {
    let text = r#"data: {"response":"\ud83d"}

data: {"response":" and \ud83d\ude00"}

data: [DONE]

"#;
    assert_eq!(
        received(Provider::WorkersAi, &[text.as_bytes()]),
        ["text \u{fffd}", "text  and \u{1F600}", "finish Stop"]
    );
}

#[test]
fn anthropics_server_tools_are_not_calls() {
    let text = include_str!("../recorded/anthropic_thinking_and_calls.txt").replace(
        r#""type":"tool_use","id":"toolu_01X""#,
        r#""type":"server_tool_use","id":"srv""#,
    );
    let received = received(Provider::Anthropic, &[text.as_bytes()]);
    assert_eq!(calls(&received), ["call 0 toolu_01Y now {}"]);
}
