//! OpenAI's Chat Completions API, as OpenAI and compatible servers offer it.

use serde::Serialize;
use serde_json::Value;

use super::answer::AnswerBuilder;
use super::caller_fields::ProviderApi;
use super::chat_answer;
use super::chat_messages::{ChatTool, CompletionDialect, SentMessage, messages, tools};
use super::reasoning::{is_openai_plain, is_openai_reasoning, reads_pdfs};
use super::{ModelRequest, to_json};
use base::outbound::host_and_port;
use store::model_settings::ReasoningEffort;

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

pub const CHAT_PATH: &str = "chat/completions";

#[derive(Serialize)]
struct OpenAiRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<SentMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The body of a request.
pub fn encode(request: &ModelRequest<'_>, model: &str, stream: bool) -> String {
    // OpenAI's reasoning models refuse `max_tokens` and `temperature`; other servers
    // support only `max_tokens`. OpenAI's other models refuse `reasoning_effort`.
    let takes_new_name = is_openai_reasoning(model);
    let limit = request.max_output_tokens;
    let effort = request.reasoning_effort.filter(|_| !is_openai_plain(model));
    let dialect = if reads_pdfs(model) {
        CompletionDialect::OpenAiWithPdfs
    } else {
        CompletionDialect::OpenAi
    };
    let caller = request.caller_of(ProviderApi::ChatCompletions);
    let stream = caller.map_or(stream, |caller| caller.is_streamed);
    let body = to_json(&OpenAiRequest {
        model: Some(model),
        temperature: request.temperature.filter(|_| !takes_new_name),
        reasoning_effort: effort.map(ReasoningEffort::name),
        messages: messages(request, dialect),
        max_tokens: limit.filter(|_| !takes_new_name),
        max_completion_tokens: limit.filter(|_| takes_new_name),
        stream: Some(stream),
        stream_options: stream.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: tools(request.tools, caller),
    });
    match caller {
        Some(caller) => caller.merge_into(&body, &[]),
        None => body,
    }
}

/// The body for the model of a class that extends this one. The class adapts the request to
/// its model, so nothing is omitted.
pub fn encode_own(request: &ModelRequest<'_>, model: &str, stream: bool) -> String {
    to_json(&OpenAiRequest {
        model: Some(model),
        messages: messages(request, CompletionDialect::Own),
        stream: Some(stream),
        ..body(request)
    })
}

/// The body without the model and the streaming fields.
pub fn encode_input(request: &ModelRequest<'_>) -> String {
    to_json(&body(request))
}

fn body<'a>(request: &ModelRequest<'a>) -> OpenAiRequest<'a> {
    OpenAiRequest {
        model: None,
        messages: messages(request, CompletionDialect::OpenAi),
        tools: tools(request.tools, None),
        max_tokens: request.max_output_tokens,
        max_completion_tokens: None,
        temperature: request.temperature,
        reasoning_effort: request.reasoning_effort.map(ReasoningEffort::name),
        stream: None,
        stream_options: None,
    }
}

/// The URL with this path.
pub fn endpoint(base_url: Option<&str>, path: &str) -> String {
    let base = base_url.unwrap_or(DEFAULT_BASE_URL).trim_end_matches('/');
    format!("{base}/{path}")
}

/// Whether requests are sent to OpenAI itself.
pub fn is_own_address(base_url: Option<&str>) -> bool {
    let own = host_and_port(DEFAULT_BASE_URL);
    base_url.is_none_or(|base_url| host_and_port(base_url) == own)
}

/// A local server needs no key, and refuses an empty one.
pub fn headers(key: Option<&str>) -> Vec<(String, String)> {
    key.into_iter()
        .map(|key| ("authorization".to_owned(), format!("Bearer {key}")))
        .collect()
}

/// Reads a chunk of a stream from a class's model.
pub fn read_own(value: &Value, answer: &mut AnswerBuilder) {
    chat_answer::read_own(value, answer);
}

/// Reads a chunk of a stream, or a whole answer.
pub fn read(value: &Value, answer: &mut AnswerBuilder) {
    chat_answer::read(value, answer);
}
