//! The answer that a client receives: the provider's, without the calls that ran here.

use serde_json::{Value, json};

use super::{
    anthropic_message, anthropic_text, assistant, chat, claude, completion, headers, in_session,
    remember, set_context, tool, unstreamed_calls, unstreamed_text, user,
};
use crate::Alice;
use crate::chat::turns::text_answer;
use base::testing::ScriptedAnswer;
use models::caller_fields::ProviderApi;
use provider_api::calls::ApiFamily;
use provider_api::refusal::render;

fn events(events: &[Value]) -> ScriptedAnswer {
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    ScriptedAnswer::stream(&lines.collect::<String>())
}

#[test]
fn a_whole_completion_is_returned_with_all_of_its_fields() {
    let alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Hello!"));
    let mut body = chat(json!([{"role": "system", "content": "Be kind."}, user("hi")]));
    body["seed"] = json!(7);
    body["response_format"] = json!({"type": "json_object"});
    body["max_tokens"] = json!(50);
    let (_, answer) = alice.complete(&headers(&[]), body);
    assert_eq!(
        answer,
        json!({
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 7,
            "model": "m-2",
            "service_tier": "default",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": "Hello!", "refusal": null, "annotations": []},
                "logprobs": null,
                "finish_reason": "stop"
            }],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        })
    );
    assert_eq!(
        alice.last_sent(),
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
            "stream": false,
            "seed": 7,
            "response_format": {"type": "json_object"},
            "max_tokens": 50
        })
    );
}

#[test]
fn a_streamed_completion_is_returned_chunk_by_chunk() {
    let alice = Alice::with_model();
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "c-1", "object": "chat.completion.chunk",
        "created": 7, "model": "m-2", "system_fingerprint": "fp", "choices": choices, "usage": usage})
    };
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
    let sent = [
        chunk(
            choice(
                json!({"role": "assistant", "content": "", "refusal": null}),
                Value::Null,
            ),
            Value::Null,
        ),
        chunk(choice(json!({"content": "Hel"}), Value::Null), Value::Null),
        chunk(choice(json!({"content": "lo"}), Value::Null), Value::Null),
        chunk(choice(json!({}), json!("stop")), Value::Null),
        chunk(
            json!([]),
            json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
        ),
    ];
    alice.outbound.answer(Ok(events(&sent)));
    let mut body = chat(json!([user("hi")]));
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let received = alice.stream_api(ProviderApi::ChatCompletions, &headers(&[]), &body);
    assert_eq!(received.len(), 6);
    assert_eq!(received[..4], sent[..4]);
    assert_eq!(received[4]["usage"], sent[4]["usage"]);
    assert_eq!(received[4]["choices"], json!([]));
    assert_eq!(received[5], "[DONE]");

    alice.outbound.answer(Ok(events(&sent)));
    body["stream_options"] = Value::Null;
    let received = alice.stream_api(ProviderApi::ChatCompletions, &headers(&[]), &body);
    assert_eq!(received.len(), 5);
    assert!(received[0].get("usage").is_none());
    assert_eq!(
        alice.last_sent()["stream_options"],
        json!({"include_usage": true})
    );
}

#[test]
fn memory_tool_calls_are_not_shown() {
    let alice = Alice::with_model();
    remember(&alice);
    let (id, name, arguments) = set_context("call_m", "Likes tea.");
    alice
        .outbound
        .answer(unstreamed_calls(&[(&id, &name, arguments)]));
    alice.outbound.answer(unstreamed_text("Noted."));
    let mut body = chat(json!([{"role": "system", "content": "Be kind."}, user("I like tea.")]));
    body["tools"] = json!([tool("look")]);
    let (session, answer) = alice.complete(&headers(&[]), body);
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["content"], "Noted.");
    assert_eq!(choice["finish_reason"], "stop");
    assert!(choice["message"].get("tool_calls").is_none());
    assert_eq!(answer["usage"]["total_tokens"], 24);
    let block = alice.ok("getBlock", json!({"label": "memory"}));
    assert_eq!(block["content"], "Likes tea.");
    let request = &alice.sent_bodies()[0];
    let names: Vec<&str> = (request["tools"].as_array().unwrap().iter())
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["set_context", "look"]);
    assert_eq!(request["tools"][1], tool("look"));
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("MEMORY") && system.ends_with("Be kind."),
        "{system}"
    );
    assert_eq!(alice.shown_in(&session).len(), 2);
}

#[test]
fn a_client_tool_call_is_returned_and_its_result_continues() {
    let alice = Alice::with_model();
    remember(&alice);
    let (id, name, arguments) = set_context("call_m", "Likes tea.");
    alice.outbound.answer(unstreamed_calls(&[
        ("call_1", "look", json!({"a": 1})),
        (&id, &name, arguments),
    ]));
    let tools = json!([tool("look")]);
    let mut body = chat(json!([user("Where?")]));
    body["tools"] = tools.clone();
    let (session, answer) = alice.complete(&headers(&[]), body);
    let message = answer["choices"][0]["message"].clone();
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(message["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(message["tool_calls"][0]["function"]["name"], "look");

    alice.outbound.answer(unstreamed_text("There."));
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "a lake"});
    let mut body = chat(json!([user("Where?"), message, result]));
    body["tools"] = tools;
    let (again, answer) = alice.complete(&headers(&[]), body);
    assert_eq!(again, session);
    assert_eq!(answer["choices"][0]["message"]["content"], "There.");
    let sent = alice.last_sent()["messages"].clone();
    let roles: Vec<&str> = (sent.as_array().unwrap().iter())
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(alice.shown_in(&session).len(), 2);
}

#[test]
fn forcing_a_client_tool_omits_memory_tools() {
    let alice = Alice::with_model();
    remember(&alice);
    alice
        .outbound
        .answer(unstreamed_calls(&[("call_1", "look", json!({}))]));
    let mut body = chat(json!([user("Where?")]));
    body["tools"] = json!([tool("look")]);
    body["tool_choice"] = json!("required");
    alice.complete(&headers(&[]), body);
    assert_eq!(alice.last_sent()["tools"], json!([tool("look")]));
}

#[test]
fn memory_can_be_off_on_or_read_only() {
    for (memory, prompt, tools) in [
        ("off", false, false),
        ("read", true, false),
        ("on", true, true),
    ] {
        let alice = Alice::with_model();
        remember(&alice);
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": "Likes tea."}),
        );
        alice.outbound.answer(unstreamed_text("Hello."));
        alice.complete(
            &headers(&[("x-session-memory", memory)]),
            chat(json!([user("hi")])),
        );
        let request = alice.last_sent();
        assert_eq!(
            request.to_string().contains("Likes tea."),
            prompt,
            "{memory}"
        );
        assert_eq!(request.get("tools").is_some(), tools, "{memory}");
    }
}

#[test]
fn a_whole_message_is_returned_with_all_of_its_fields() {
    let alice = Alice::with_anthropic();
    remember(&alice);
    alice.outbound.answer(anthropic_message(
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Let me note it.", "citations": null},
            {"type": "tool_use", "id": "toolu_m", "name": "set_context",
             "input": {"label": "memory", "content": "Likes tea."}}
        ]),
        "tool_use",
    ));
    alice.outbound.answer(anthropic_text("Noted."));
    let mut body = claude(json!([user("I like tea.")]));
    body["system"] =
        json!([{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]);
    body["top_k"] = json!(5);
    body["metadata"] = json!({"user_id": "u"});
    let (_, answer) = alice.message(&headers(&[]), body);
    assert_eq!(
        answer,
        json!({
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "Let me note it.", "citations": null},
                {"type": "text", "text": "Noted.", "citations": null}
            ],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "container": null,
            "usage": {"input_tokens": 20, "output_tokens": 4, "service_tier": "standard"}
        })
    );
    let request = &alice.sent_bodies()[0];
    assert_eq!(request["top_k"], 5);
    assert_eq!(request["max_tokens"], 100);
    assert_eq!(request["metadata"], json!({"user_id": "u"}));
    let system = request["system"].as_array().unwrap();
    assert!(system[0]["text"].as_str().unwrap().contains("MEMORY"));
    assert_eq!(
        system[1],
        json!({"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}})
    );
}

#[test]
fn system_messages_midway_are_appended_to_the_system_prompt() {
    let alice = Alice::with_anthropic();
    let instruction =
        |text: &str| json!({"role": "system", "content": [{"type": "text", "text": text}]});
    let mut passing = instruction("Few tokens are left.");
    passing["clear_at"] = json!("next_user_message");
    let mut body = claude(json!([user("hi"), instruction("It is Monday."), passing]));
    body["system"] = json!([
        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]);
    alice.outbound.answer(anthropic_text("Hello!"));
    let (first, _) = alice.message(&headers(&[]), body.clone());
    let text = |text: &str| json!({"type": "text", "text": text});
    let sent = alice.last_sent();
    let system = sent["system"].as_array().unwrap();
    assert_eq!(system[0], body["system"][0]);
    assert_eq!(
        system[1..],
        [text("It is Monday."), text("Few tokens are left.")]
    );
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    // In the next request, settings that last until the next user message no longer apply.
    let messages = body["messages"].as_array_mut().unwrap();
    messages.extend([assistant("Hello!"), user("And now?")]);
    messages.push(json!({"role": "system", "content": "Be short."}));
    alice.outbound.answer(anthropic_text("Fine."));
    let (second, _) = alice.message(&headers(&[]), body.clone());
    assert_eq!(first, second);
    let sent = alice.last_sent();
    assert_eq!(
        sent["system"].as_array().unwrap()[1..],
        [text("It is Monday."), text("Be short.")]
    );
    // Only texts can be added there.
    body["messages"][1]["content"] = json!([{"type": "tool_removal", "tool": {"name": "look"}}]);
    let refused = alice.complete_with(ProviderApi::Messages, &headers(&[]), &body);
    assert_eq!(
        refused.unwrap_err().field.as_deref(),
        Some("messages[1].content[0]")
    );
}

#[test]
fn a_streamed_message_stays_one_message_across_internal_calls() {
    let alice = Alice::with_anthropic();
    remember(&alice);
    let start = |id: &str| {
        json!({"type": "message_start", "message": {"id": id, "type": "message",
        "role": "assistant", "model": "claude-x", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1}}})
    };
    let block = |index: i64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: i64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: i64| json!({"type": "content_block_stop", "index": index});
    let end = |reason: &str| {
        json!({"type": "message_delta", "delta": {"stop_reason": reason,
        "stop_sequence": null}, "usage": {"output_tokens": 5}})
    };
    alice.outbound.answer(Ok(events(&[
        start("msg_1"),
        json!({"type": "ping"}),
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "One moment."})),
        stop(0),
        block(1, json!({"type": "tool_use", "id": "toolu_m", "name": "set_context", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"label\":\"memory\",\"content\":\"tea\"}"})),
        stop(1),
        end("tool_use"),
        json!({"type": "message_stop"}),
    ])));
    alice.outbound.answer(Ok(events(&[
        start("msg_2"),
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Noted."})),
        stop(0),
        end("end_turn"),
        json!({"type": "message_stop"}),
    ])));
    let mut body = claude(json!([user("I like tea.")]));
    body["stream"] = json!(true);
    let received = alice.stream_api(ProviderApi::Messages, &headers(&[]), &body);
    assert_eq!(
        received,
        [
            start("msg_1"),
            json!({"type": "ping"}),
            block(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "One moment."})),
            stop(0),
            block(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "Noted."})),
            stop(1),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn",
                "stop_sequence": null}, "usage": {"output_tokens": 10}}),
            json!({"type": "message_stop"}),
        ]
    );
}

#[test]
fn a_model_of_another_provider_answers_in_the_requested_api() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    let mut body = claude(json!([user("hi")]));
    body["model"] = json!("default");
    body["stream"] = json!(true);
    let received = alice.stream_api(ProviderApi::Messages, &headers(&[]), &body);
    let kinds: Vec<&str> = received
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(received[2]["delta"]["text"], "Hello!");
    assert_eq!(alice.last_sent()["max_tokens"], 100);

    body["top_k"] = json!(5);
    let refused = alice.begin_api(ProviderApi::Messages, &headers(&[]), &body);
    let error = refused.err().unwrap();
    assert_eq!(error.field.as_deref(), Some("top_k"));
}

#[test]
fn duplicate_call_ids_are_made_unique_for_the_client() {
    let alice = Alice::with_model();
    let tools = json!([tool("look")]);
    let request = |messages: Value| {
        let mut body = chat(messages);
        body["tools"] = tools.clone();
        body
    };
    alice
        .outbound
        .answer(unstreamed_calls(&[("call_1", "look", json!({}))]));
    let (_, first) = alice.complete(&in_session("s"), request(json!([user("Where?")])));
    let first = first["choices"][0]["message"].clone();
    assert_eq!(first["tool_calls"][0]["id"], "call_1");
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "a lake"});
    alice
        .outbound
        .answer(unstreamed_calls(&[("call_1", "look", json!({}))]));
    let (_, second) = alice.complete(
        &in_session("s"),
        request(json!([user("Where?"), first, result])),
    );
    let second = second["choices"][0]["message"].clone();
    let id = second["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(id, "call_1");
    let other = json!({"role": "tool", "tool_call_id": id, "content": "a hill"});
    alice.outbound.answer(unstreamed_text("Both."));
    let history = json!([user("Where?"), first, result, second, other]);
    let (session, answer) = alice.complete(&headers(&[]), request(history));
    assert_eq!(session, "s");
    assert_eq!(answer["choices"][0]["message"]["content"], "Both.");
}

#[test]
fn invalid_json_arguments_reach_the_client_unchanged() {
    let alice = Alice::with_model();
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":"}});
    alice.outbound.answer(completion(
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        "tool_calls",
    ));
    let mut body = chat(json!([user("Where?")]));
    body["tools"] = json!([tool("look")]);
    let (_, answer) = alice.complete(&headers(&[]), body);
    assert_eq!(answer["choices"][0]["message"]["tool_calls"], json!([call]));
}

#[test]
fn images_and_provider_specific_fields_are_forwarded() {
    let alice = Alice::with_model();
    let pixel = "data:image/png;base64,iVBORw0KGgo=";
    let content = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": pixel, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    ]);
    alice.outbound.answer(unstreamed_text("A pixel."));
    let question = json!({"role": "user", "name": "ann", "content": content});
    alice.complete(&in_session("s"), chat(json!([question])));
    assert_eq!(alice.last_sent()["messages"][0], question);
    let parts = alice.shown_in("s")[0]["parts"].clone();
    assert_eq!(parts[1]["mediaType"], "image/png");

    alice.outbound.answer(unstreamed_text("Small."));
    alice.complete(
        &in_session("s"),
        chat(json!([question, assistant("A pixel."), user("How big?")])),
    );
    assert_eq!(alice.last_sent()["messages"][0], question);
}

#[test]
fn a_thread_field_is_accepted_with_the_whole_history() {
    let alice = Alice::with_anthropic();
    alice.outbound.answer(anthropic_text("Hello."));
    let mut body = claude(json!([user("hi")]));
    body["thread"] = json!({"type": "create"});
    alice.message(&headers(&[]), body.clone());
    assert_eq!(alice.last_sent().get("thread"), None);
    body["thread"] = json!({"type": "continue", "previous_message_id": "msg_1"});
    let started = alice.begin_api(ProviderApi::Messages, &headers(&[]), &body);
    let refused = render(ApiFamily::Anthropic, &started.err().unwrap());
    let reply: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(refused.status, 404);
    assert_eq!(
        reply["error"]["details"],
        json!({"error_code": "thread_not_found"})
    );
}

#[test]
fn a_providers_error_keeps_its_status() {
    use provider_api::calls::ApiFamily;
    use provider_api::refusal::render;
    let alice = Alice::with_model();
    let problem = json!({"error": {"message": "no", "type": "invalid_request_error", "code": "unsupported_value"}});
    let mut refused = ScriptedAnswer::json(&problem).unwrap();
    refused.status = 400;
    alice.outbound.answer(Ok(refused));
    let body = chat(json!([user("hi")]));
    let outcome = alice.complete_with(ProviderApi::ChatCompletions, &headers(&[]), &body);
    let error = outcome.unwrap_err();
    let refusal = render(ApiFamily::OpenAi, &error);
    assert_eq!(refusal.status, 400);
    let body: Value = serde_json::from_str(&refusal.body).unwrap();
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(render(ApiFamily::Anthropic, &error).status, 400);
}
