//! A conversation in each provider's format.

use serde_json::{Value, json};

use crate::message::ContextMessage;
use crate::{ModelRequest, ToolDefinition, anthropic, openai, workers_ai};
use store::model_settings::ReasoningEffort;

struct SentRequest {
    system: Vec<String>,
    messages: Vec<ContextMessage>,
    tools: Vec<ToolDefinition>,
}

fn request(messages: Value) -> SentRequest {
    let tool =
        json!({"name": "echo", "description": "Says it again.", "parameters": {"type": "object"}});
    SentRequest {
        system: vec!["Be brief.".to_owned(), "Be kind.".to_owned()],
        messages: serde_json::from_value(messages).unwrap(),
        tools: vec![serde_json::from_value(tool).unwrap()],
    }
}

impl SentRequest {
    fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            system: &self.system,
            messages: &self.messages,
            tools: &self.tools,
            ..ModelRequest::default()
        }
    }
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

fn conversation() -> SentRequest {
    request(json!([
        {"role": "user", "content": "Echo, please."},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "echo", "arguments": {"b": 1, "a": 2.0}}]},
        {"role": "tool", "content": "no", "toolCallId": "c1", "toolName": "echo", "isError": true},
        {"role": "assistant", "content": "It failed."},
        {"role": "user", "content": "Why?"}
    ]))
}

#[test]
fn a_conversation_for_openai() {
    let request = conversation();
    let body = openai::encode(&request.request(), "gpt-4o-mini", true);
    assert_eq!(
        parsed(&body),
        json!({
            "model": "gpt-4o-mini", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {
                "name": "echo", "description": "Says it again.", "parameters": {"type": "object"}}}],
            "messages": [
                {"role": "system", "content": "Be brief.\n\nBe kind."},
                {"role": "user", "content": "Echo, please."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"a\":2.0,\"b\":1}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "Error: no"},
                {"role": "assistant", "content": "It failed."},
                {"role": "user", "content": "Why?"}
            ]
        })
    );
}

#[test]
fn arguments_are_sent_back_verbatim() {
    let arguments = r#"{"b":1,"a":2.0,"b":12345678901234567890}"#;
    let call = format!(
        r#"[{{"role":"assistant","toolCalls":[{{"id":"c","name":"t","arguments":{arguments}}}]}}]"#
    );
    let request = SentRequest {
        messages: base::json::decode(&call).unwrap(),
        ..request(json!([]))
    };
    assert!(anthropic::encode_input(&request.request()).contains(arguments));
    assert!(openai::encode_input(&request.request()).contains(&Value::from(arguments).to_string()));
}

#[test]
fn a_conversation_for_workers_ai() {
    let request = conversation();
    let body = parsed(&workers_ai::encode(&request.request(), false));
    assert_eq!(body["stream"], false);
    assert_eq!(body["max_tokens"], workers_ai::DEFAULT_MAX_TOKENS);
    assert!(body.get("model").is_none());
    // Workers AI refuses `content: null`, and a result that doesn't name its tool.
    assert_eq!(body["messages"][2]["content"], "");
    assert_eq!(
        body["messages"][3],
        json!({"role": "tool", "name": "echo", "tool_call_id": "c1", "content": "Error: no"})
    );
}

#[test]
fn a_conversation_for_anthropic() {
    let request = conversation();
    let body = parsed(&anthropic::encode(
        &request.request(),
        "claude-sonnet-4-5",
        true,
    ));
    assert_eq!(
        body,
        json!({
            "model": "claude-sonnet-4-5", "stream": true, "max_tokens": anthropic::DEFAULT_MAX_TOKENS,
            "system": [{"type": "text", "text": "Be brief.\n\nBe kind.", "cache_control": {"type": "ephemeral"}}],
            "tools": [{"name": "echo", "description": "Says it again.", "input_schema": {"type": "object"},
                "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Echo, please."}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "echo", "input": {"a": 2.0, "b": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": true}]},
                {"role": "assistant", "content": [{"type": "text", "text": "It failed."}]},
                {"role": "user", "content": [{"type": "text", "text": "Why?", "cache_control": {"type": "ephemeral"}}]}
            ]
        })
    );
}

#[test]
fn a_reminder_follows_the_newest_user_message() {
    let request = conversation();
    let request = ModelRequest {
        reminder: Some("It rains now."),
        ..request.request()
    };
    for body in [
        openai::encode(&request, "m", true),
        workers_ai::encode(&request, true),
    ] {
        assert_eq!(
            parsed(&body)["messages"][5],
            json!({"role": "user", "content": "Why?\n\nIt rains now."})
        );
    }
    let marked = json!({"type": "text", "text": "Why?", "cache_control": {"type": "ephemeral"}});
    let reminder = json!({"type": "text", "text": "It rains now."});
    assert_eq!(
        parsed(&anthropic::encode(&request, "m", true))["messages"][4],
        json!({"role": "user", "content": [marked, reminder]})
    );
}

#[test]
fn a_reminder_comes_last_if_there_is_no_user_message() {
    let request = request(json!([{"role": "assistant", "content": "Hello."}]));
    let request = ModelRequest {
        reminder: Some("It rains now."),
        ..request.request()
    };
    let body = parsed(&openai::encode(&request, "m", true));
    assert_eq!(
        body["messages"][2],
        json!({"role": "user", "content": "It rains now."})
    );
    let body = parsed(&anthropic::encode(&request, "m", true));
    assert_eq!(
        body["messages"][2],
        json!({"role": "user", "content": [{"type": "text", "text": "It rains now."}]})
    );
}

#[test]
fn a_reminder_follows_the_text_and_images_of_a_message() {
    let request = request(json!([{"role": "user", "content": "What is it?", "files": [
        {"mediaType": "image/png", "url": "data:image/png;base64,AAAA"}]}]));
    let request = ModelRequest {
        reminder: Some("It rains now."),
        ..request.request()
    };
    let body = parsed(&openai::encode(&request, "m", true));
    let kinds = |content: &Value| -> Vec<Value> {
        let blocks = content.as_array().unwrap().iter();
        blocks.map(|block| block["type"].clone()).collect()
    };
    assert_eq!(
        kinds(&body["messages"][1]["content"]),
        ["text", "image_url", "text"]
    );
    let body = parsed(&anthropic::encode(&request, "m", true));
    let content = &body["messages"][0]["content"];
    assert_eq!(kinds(content), ["image", "text", "text"]);
    assert_eq!(content[2]["text"], "It rains now.");
    assert!(content[2].get("cache_control").is_none());
}

#[test]
fn absent_parts_are_left_out() {
    let nothing = SentRequest {
        system: vec![],
        messages: vec![],
        tools: vec![],
    };
    let request = nothing.request();
    assert_eq!(
        parsed(&openai::encode_input(&request)),
        json!({"messages": []})
    );
    assert_eq!(
        parsed(&workers_ai::encode_input(&request)),
        json!({"messages": [], "max_tokens": workers_ai::DEFAULT_MAX_TOKENS})
    );
    assert_eq!(
        parsed(&anthropic::encode_input(&request)),
        json!({"messages": [], "max_tokens": anthropic::DEFAULT_MAX_TOKENS})
    );
    assert!(!openai::encode(&request, "m", false).contains("stream_options"));
}

#[test]
fn openais_reasoning_models_use_another_limit_field() {
    let request = conversation();
    let request = ModelRequest {
        max_output_tokens: Some(100),
        ..request.request()
    };
    for (model, name) in [
        ("gpt-4o", "max_tokens"),
        ("llama-3", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("gpt-5", "max_completion_tokens"),
    ] {
        let body = parsed(&openai::encode(&request, model, false));
        assert_eq!(body[name], 100, "{model}");
        let limits = ["max_tokens", "max_completion_tokens"];
        assert_eq!(
            limits
                .iter()
                .filter(|name| body.get(**name).is_some())
                .count(),
            1
        );
    }
}

#[test]
fn a_user_message_with_an_image_is_sent_in_parts() {
    let request = request(json!([{"role": "user", "content": "What is it?", "files": [
        {"mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
        {"mediaType": "image/png", "url": "https://example.com/a.png"},
        {"mediaType": "application/zip", "url": "data:,x", "filename": "a.zip"}
    ]}]));
    for body in [
        openai::encode_input(&request.request()),
        workers_ai::encode_input(&request.request()),
    ] {
        assert_eq!(
            parsed(&body)["messages"][1]["content"],
            json!([
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "text", "text": "[Attachment: a.zip, application/zip]"}
            ])
        );
    }
}

#[test]
fn a_user_message_with_only_texts_is_sent_as_one_text() {
    let request = request(json!([{"role": "user", "content": "Read:", "files": [
        {"mediaType": "text/plain", "url": "data:,hello", "filename": "a.txt"}
    ]}]));
    assert_eq!(
        parsed(&openai::encode_input(&request.request()))["messages"][1]["content"],
        "Read:\n\n[Attachment: a.txt, text/plain]\nhello\n[End of the attachment]"
    );
}

#[test]
fn empty_messages_are_left_out() {
    let request = request(json!([
        {"role": "user", "content": "a"}, {"role": "assistant", "content": " "}, {"role": "system", "content": ""}
    ]));
    let messages = &parsed(&openai::encode_input(&request.request()))["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 2);
}

#[test]
fn urls_and_headers() {
    assert_eq!(
        openai::endpoint(None, openai::CHAT_PATH),
        "https://api.openai.com/v1/chat/completions"
    );
    assert_eq!(
        openai::endpoint(Some("http://127.0.0.1:8080/v1/"), openai::CHAT_PATH),
        "http://127.0.0.1:8080/v1/chat/completions"
    );
    assert_eq!(
        anthropic::url(None),
        "https://api.anthropic.com/v1/messages"
    );
    assert_eq!(openai::headers(None), []);
    assert_eq!(
        openai::headers(Some("k")),
        [("authorization".to_owned(), "Bearer k".to_owned())]
    );
    assert_eq!(
        anthropic::headers("k", None),
        [
            ("x-api-key".to_owned(), "k".to_owned()),
            ("anthropic-version".to_owned(), "2023-06-01".to_owned())
        ]
    );
    assert_eq!(
        anthropic::headers("k", Some("files-api")).last(),
        Some(&("anthropic-beta".to_owned(), "files-api".to_owned()))
    );
}

/// The settings in the body.
fn settings_in(body: &str) -> Value {
    let body = parsed(body);
    let names = [
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "reasoning_effort",
        "thinking",
        "output_config",
    ];
    let found = names.into_iter().filter_map(|name| {
        let value = body.get(name)?.clone();
        Some((name.to_owned(), value))
    });
    Value::Object(found.collect())
}

#[test]
fn settings_use_each_providers_names_and_skip_refused_ones() {
    let request = request(json!([{"role": "user", "content": "Hi"}]));
    let request = ModelRequest {
        max_output_tokens: Some(100),
        temperature: Some(1.5),
        reasoning_effort: Some(ReasoningEffort::Minimal),
        ..request.request()
    };
    for (model, expected) in [
        ("gpt-4o", json!({"max_tokens": 100, "temperature": 1.5})),
        (
            "gpt-5",
            json!({"max_completion_tokens": 100, "reasoning_effort": "minimal"}),
        ),
        (
            "qwen3",
            json!({"max_tokens": 100, "temperature": 1.5, "reasoning_effort": "minimal"}),
        ),
    ] {
        let body = openai::encode(&request, model, true);
        assert_eq!(settings_in(&body), expected, "{model}");
    }
    for (model, expected) in [
        (
            "claude-3-5-haiku-latest",
            json!({"max_tokens": 100, "temperature": 1.0}),
        ),
        (
            "claude-sonnet-4-5",
            json!({"max_tokens": 1124, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ),
        (
            "claude-sonnet-4-6",
            json!({"max_tokens": 100, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ),
    ] {
        let body = anthropic::encode(&request, model, true);
        assert_eq!(settings_in(&body), expected, "{model}");
    }
    assert_eq!(
        settings_in(&workers_ai::encode(&request, true)),
        json!({"max_tokens": 100, "temperature": 1.5, "reasoning_effort": "low"})
    );
}

#[test]
fn reasoning_effort_is_sent_only_if_the_agent_sets_it() {
    let request = request(json!([{"role": "user", "content": "Hi"}]));
    let request = ModelRequest {
        temperature: Some(0.5),
        reasoning_effort: Some(ReasoningEffort::None),
        ..request.request()
    };
    let plain = json!({"max_tokens": anthropic::DEFAULT_MAX_TOKENS, "temperature": 0.5});
    for model in ["claude-sonnet-4-5", "claude-sonnet-4-6"] {
        assert_eq!(
            settings_in(&anthropic::encode(&request, model, true)),
            plain
        );
    }
    // The newest models accept no temperature.
    assert_eq!(
        settings_in(&anthropic::encode(&request, "claude-opus-4-7", true)),
        json!({"max_tokens": anthropic::DEFAULT_MAX_TOKENS})
    );
    assert!(!workers_ai::encode(&request, true).contains("reasoning_effort"));
    let body = openai::encode(&request, "gpt-5.1", true);
    assert_eq!(settings_in(&body), json!({"reasoning_effort": "none"}));
}

/// With a thinking budget, Anthropic refuses results of calls without the thinking
/// before the calls.
#[test]
fn a_thinking_budget_applies_before_calls_only() {
    let thinks = |messages: Value| {
        let request = request(messages);
        let request = ModelRequest {
            reasoning_effort: Some(ReasoningEffort::High),
            ..request.request()
        };
        settings_in(&anthropic::encode(&request, "claude-sonnet-4-5", true))
            .get("thinking")
            .is_some()
    };
    let call = json!({"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "echo", "arguments": {}}]});
    let result = json!({"role": "tool", "content": "hi", "toolCallId": "c1"});
    let user = json!({"role": "user", "content": "Go."});
    assert!(thinks(json!([user])));
    assert!(!thinks(json!([user, call, result])));
    assert!(thinks(json!([user, call, result, user])));
}

#[test]
fn a_pdf_is_sent_to_models_that_read_it_and_named_to_others() {
    let request = request(json!([{"role": "user", "content": "Sum it up.", "files": [
        {"mediaType": "application/pdf", "url": "data:application/pdf;base64,JVBERi0=", "filename": "plan.pdf"}]}]));
    let request = request.request();
    let body = parsed(&anthropic::encode(&request, "m", true));
    assert_eq!(
        body["messages"][0]["content"][0],
        json!({"type": "document", "title": "plan.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}})
    );
    let body = parsed(&openai::encode(&request, "openai/gpt-4o", true));
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "text", "text": "Sum it up."},
            {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}])
    );
    let named = "Sum it up.\n\n[Attachment: plan.pdf, application/pdf]";
    let body = parsed(&openai::encode(&request, "llama-3", true));
    assert_eq!(body["messages"][1]["content"], named);
    let body = parsed(&workers_ai::encode(&request, true));
    assert_eq!(body["messages"][1]["content"], named);
}
