//! Anthropic's Messages API: the request around a conversation, and the events of an answer.

use serde::Serialize;
use serde_json::Value;

use super::answer::{AnswerBuilder, CallPiece};
use super::anthropic_messages::{AnthropicMessage, CacheControl, messages, system};
use super::anthropic_thoughts as thoughts;
use super::caller_fields::ProviderApi;
use super::reasoning::{
    Thinking, anthropic_takes_temperature, anthropic_thinking, thinking_budget, three_levels,
};
use super::{FinishReason, ModelRequest, TokenUsage, to_json};

use base::json::RawValue;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com/v1";

const VERSION: &str = "2023-06-01";

/// The most tokens of an answer if the request sets no limit. The provider requires a
/// number, and every model in service can write this many.
pub const DEFAULT_MAX_TOKENS: i64 = 8192;

/// Other providers' temperatures go up to 2.
const MAX_TEMPERATURE: f64 = 1.0;

#[derive(Serialize)]
struct AnthropicRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    max_tokens: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<SystemText<'a>>,
    messages: Vec<AnthropicMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<SentTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingConfig {
    Enabled { budget_tokens: i64 },
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

/// The system text as it is, or as a block, which can be marked.
#[derive(Serialize)]
#[serde(untagged)]
enum SystemText<'a> {
    Plain(String),
    Blocks(Vec<SystemPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum SystemPart<'a> {
    Rendered(SystemBlock),
    /// As the caller wrote it.
    Given(&'a RawValue),
}

#[derive(Serialize)]
#[serde(untagged)]
enum SentTool<'a> {
    Defined(AnthropicTool<'a>),
    /// As the caller wrote it.
    Given(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SystemBlock {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The body of a request. It marks the tools, the system text and the conversation for the
/// provider's cache.
pub fn encode(request: &ModelRequest<'_>, model: &str, stream: bool) -> String {
    let caller = request.caller_of(ProviderApi::Messages);
    let marks = caller.map_or(0, |caller| caller.cache_marks);
    let cache = |takes: bool| takes.then_some(CacheControl::Ephemeral);
    // A request may have four marks. Ours are two before the messages, and two in them.
    let mut body = body(request, cache(marks == 0), cache(marks <= 2));
    set_thinking(&mut body, request, model);
    let json = to_json(&AnthropicRequest {
        model: Some(model),
        stream: Some(caller.map_or(stream, |caller| caller.is_streamed)),
        ..body
    });
    match caller {
        Some(caller) => caller.merge_into(&json, &[]),
        None => json,
    }
}

/// The body without the model, the field of streaming, and the marks for the cache: the
/// sender of the body knows whether another request will follow.
pub fn encode_input(request: &ModelRequest<'_>) -> String {
    to_json(&body(request, None, None))
}

fn body<'a>(
    request: &ModelRequest<'a>,
    cache: Option<CacheControl>,
    messages_cache: Option<CacheControl>,
) -> AnthropicRequest<'a> {
    AnthropicRequest {
        model: None,
        max_tokens: request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        system: system_text(request, cache),
        messages: messages(request, messages_cache),
        tools: tools(request, cache),
        temperature: request.temperature.map(|it| it.min(MAX_TEMPERATURE)),
        thinking: None,
        output_config: None,
        stream: None,
    }
}

/// Our text as one piece, then the caller's blocks as it wrote them.
fn system_text<'a>(
    request: &ModelRequest<'a>,
    cache: Option<CacheControl>,
) -> Option<SystemText<'a>> {
    let caller = request.caller_of(ProviderApi::Messages);
    let given = caller.map_or(&[][..], |caller| &caller.system);
    let own_texts = match (caller, given) {
        (Some(caller), [_, ..]) => request.system.len().saturating_sub(caller.system_texts),
        _ => request.system.len(),
    };
    let prompt = request.system.get(..own_texts).unwrap_or_default();
    let text = Some(system(prompt, request.messages)).filter(|text| !text.is_empty());
    if given.is_empty() && cache.is_none() {
        return text.map(SystemText::Plain);
    }
    let block = text.map(|text| {
        SystemPart::Rendered(SystemBlock::Text {
            text,
            cache_control: cache,
        })
    });
    let given = given.iter().map(|block| SystemPart::Given(block));
    let blocks: Vec<SystemPart<'a>> = block.into_iter().chain(given).collect();
    (!blocks.is_empty()).then_some(SystemText::Blocks(blocks))
}

fn tools<'a>(request: &ModelRequest<'a>, cache: Option<CacheControl>) -> Vec<SentTool<'a>> {
    let caller = request.caller_of(ProviderApi::Messages);
    let given = |name: &str| caller.and_then(|caller| caller.find_tool(name));
    let tools = request.tools.iter().map(|tool| match given(&tool.name) {
        Some(given) => SentTool::Given(given),
        None => SentTool::Defined(AnthropicTool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: None,
        }),
    });
    let mut tools: Vec<SentTool<'a>> = tools.collect();
    if let Some(SentTool::Defined(last)) = tools.last_mut() {
        last.cache_control = cache;
    }
    tools
}

/// Sets the model's reasoning effort, and removes the fields that it then rejects.
fn set_thinking(body: &mut AnthropicRequest<'_>, request: &ModelRequest<'_>, model: &str) {
    let effort = request.reasoning_effort;
    match anthropic_thinking(model) {
        Thinking::Never => {}
        // A model with a budget refuses to continue after its tools' results, unless the request
        // has the thoughts before the calls. If they were not stored, because they were too long or
        // another model's, it thinks before the first call of a turn.
        Thinking::Budget => {
            let budget = effort.and_then(thinking_budget);
            if let Some(budget_tokens) = budget.filter(|_| !answers_unthought_calls(request)) {
                body.thinking = Some(ThinkingConfig::Enabled { budget_tokens });
                // The limit counts the thoughts, too.
                body.max_tokens += budget_tokens;
            }
        }
        Thinking::Adaptive => {
            if let Some(effort) = effort.and_then(three_levels) {
                body.thinking = Some(ThinkingConfig::Adaptive);
                body.output_config = Some(OutputConfig { effort });
            }
        }
    }
    if body.thinking.is_some() || !anthropic_takes_temperature(model) {
        body.temperature = None;
    }
}

/// Whether the model continues after calls whose thoughts are not in the request.
fn answers_unthought_calls(request: &ModelRequest<'_>) -> bool {
    let start = request.newest_user().map_or(0, |index| index + 1);
    let since = request.messages.iter().skip(start);
    since
        .into_iter()
        .any(|message| !message.calls().is_empty() && !thoughts::is_thought(message))
}

/// The address of requests.
pub fn url(base_url: Option<&str>) -> String {
    let base = base_url.unwrap_or(DEFAULT_BASE_URL).trim_end_matches('/');
    format!("{base}/messages")
}

pub fn headers(key: &str, beta: Option<&str>) -> Vec<(String, String)> {
    let beta = beta.map(|names| ("anthropic-beta", names));
    [("x-api-key", key), ("anthropic-version", VERSION)]
        .into_iter()
        .chain(beta)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// An event of a stream, or a whole answer.
pub fn read(value: &Value, answer: &mut AnswerBuilder) {
    let index = value.get("index").and_then(Value::as_i64);
    match value.get("type").and_then(Value::as_str) {
        Some("message") => read_whole(value, answer),
        Some("message_start") => {
            if let Some(message) = value.get("message") {
                read_usage(message, answer);
            }
        }
        Some("content_block_start") => {
            if let Some(block) = value.get("content_block") {
                read_block(index, block, answer);
            }
        }
        Some("content_block_delta") => {
            if let Some(delta) = value.get("delta") {
                read_delta(index, delta, answer);
            }
        }
        Some("content_block_stop") => {
            if let Some(index) = index {
                answer.complete_call(index);
            }
        }
        Some("message_delta") => {
            read_usage(value, answer);
            read_stop(value.get("delta"), answer);
        }
        Some("message_stop") => {
            thoughts::seal(answer);
            answer.close();
        }
        // `ping`, and unknown events: the provider may add events at any time.
        _ => {}
    }
}

fn read_whole(message: &Value, answer: &mut AnswerBuilder) {
    let blocks = message.get("content").and_then(Value::as_array);
    for (block, index) in blocks.into_iter().flatten().zip(0..) {
        read_block(Some(index), block, answer);
        answer.complete_call(index);
    }
    read_usage(message, answer);
    read_stop(Some(message), answer);
}

fn read_block(index: Option<i64>, block: &Value, answer: &mut AnswerBuilder) {
    match find_text(block, "type") {
        "text" => {
            answer.add_text(find_text(block, "text"));
            thoughts::note_text(answer);
        }
        "thinking" => {
            answer.add_reasoning(find_text(block, "thinking"));
            thoughts::begin(index, block, answer);
        }
        "redacted_thinking" => thoughts::begin(index, block, answer),
        "tool_use" => {
            // A whole answer contains the input. A stream begins with `{}` and sends the input in
            // pieces.
            let input = block.get("input").and_then(Value::as_object);
            let input = input.filter(|input| !input.is_empty());
            let arguments = input.map(to_json).unwrap_or_default();
            answer.add_call(&CallPiece {
                key: index,
                id: find_text(block, "id"),
                name: find_text(block, "name"),
                arguments: &arguments,
            });
        }
        _ => {}
    }
}

fn read_delta(index: Option<i64>, delta: &Value, answer: &mut AnswerBuilder) {
    match find_text(delta, "type") {
        "text_delta" => answer.add_text(find_text(delta, "text")),
        "thinking_delta" => {
            answer.add_reasoning(find_text(delta, "thinking"));
            thoughts::append(index, "thinking", delta, answer);
        }
        "signature_delta" => thoughts::append(index, "signature", delta, answer),
        // Tools that the provider runs itself begin with another kind of block.
        "input_json_delta" if answer.has_call(index) => answer.add_call(&CallPiece {
            key: index,
            arguments: find_text(delta, "partial_json"),
            ..CallPiece::default()
        }),
        _ => {}
    }
}

fn read_usage(value: &Value, answer: &mut AnswerBuilder) {
    let Some(usage) = value.get("usage") else {
        return;
    };
    let count = |name: &str| usage.get(name).and_then(Value::as_i64);
    let so_far = answer.usage();
    // Tokens written to a cache or read from it are input, too. The event that ends an answer may
    // repeat all of it, or only the output.
    let read = count("cache_read_input_tokens").unwrap_or_default();
    let written = count("cache_creation_input_tokens").unwrap_or_default();
    let input = count("input_tokens");
    answer.set_usage(TokenUsage {
        input_tokens: input.map_or(so_far.input_tokens, |count| {
            count.saturating_add(read).saturating_add(written)
        }),
        output_tokens: count("output_tokens").unwrap_or(so_far.output_tokens),
        cached_input_tokens: input.map_or(so_far.cached_input_tokens, |_| read),
    });
}

fn read_stop(holder: Option<&Value>, answer: &mut AnswerBuilder) {
    let reason = holder.and_then(|holder| holder.get("stop_reason")?.as_str());
    if let Some(reason) = reason {
        thoughts::seal(answer);
        answer.set_finish(match reason {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "tool_use" => FinishReason::ToolCalls,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Other,
        });
    }
}

fn find_text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
