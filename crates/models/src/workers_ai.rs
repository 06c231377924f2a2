//! Workers AI. Its answers have one of two shapes, depending on the model: its own
//! (`response` and `tool_calls`) or OpenAI's (`choices`).

use serde::Serialize;
use serde_json::Value;

use super::answer::AnswerBuilder;
use super::chat_answer::{self, finish_reason, read_calls, read_usage};
use super::chat_messages::{ChatTool, CompletionDialect, SentMessage, messages, tools};
use super::reasoning::three_levels;
use super::{ModelRequest, to_json};
use base::json;

/// The default limit of an answer's tokens: the platform's own default of 256 truncates
/// most answers.
pub const DEFAULT_MAX_TOKENS: i64 = 4096;

#[derive(Serialize)]
struct WorkersAiRequest<'a> {
    messages: Vec<SentMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    max_tokens: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

/// The input of a run. The model's name is passed separately.
pub fn encode(request: &ModelRequest<'_>, stream: bool) -> String {
    to_json(&WorkersAiRequest {
        stream: Some(stream),
        ..body(request)
    })
}

/// The input without the field `stream`.
pub fn encode_input(request: &ModelRequest<'_>) -> String {
    to_json(&body(request))
}

fn body<'a>(request: &ModelRequest<'a>) -> WorkersAiRequest<'a> {
    WorkersAiRequest {
        messages: messages(request, CompletionDialect::WorkersAi),
        tools: tools(request.tools, None),
        max_tokens: request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        temperature: request.temperature,
        reasoning_effort: request.reasoning_effort.and_then(three_levels),
        stream: None,
    }
}

/// Reads a chunk of a stream, or a whole answer.
pub fn read(value: &Value, answer: &mut AnswerBuilder) {
    // The REST API wraps the binding's answer in `result`.
    let value = value
        .get("result")
        .filter(|it| it.is_object())
        .unwrap_or(value);
    let choices = value.get("choices").and_then(Value::as_array);
    if choices.is_some_and(|choices| !choices.is_empty()) {
        // Some models answer in both shapes at once; one is enough.
        chat_answer::read(value, answer);
        return;
    }
    match value.get("response") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => answer.add_text(text),
        // An answer, or a part of one, that happens to be JSON arrives parsed.
        Some(parsed) => answer.add_text(&json::text(parsed)),
    }
    read_calls(value, answer);
    read_usage(value, answer);
    if let Some(reason) = value.get("finish_reason").and_then(Value::as_str) {
        answer.set_finish(finish_reason(reason));
    }
}
