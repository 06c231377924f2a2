//! Reads answers in the format of OpenAI's chat: `choices` with a `delta` or a `message`. A
//! dozen servers use this format with small differences; all variants are handled here.

use serde_json::{Value, json};

use super::answer::{AnswerBuilder, CallPiece};
use super::{FinishReason, TokenUsage};
use base::json;

/// Reads a chunk of a stream or a whole answer; they differ in one field name.
pub fn read(value: &Value, answer: &mut AnswerBuilder) {
    let choices = value.get("choices").and_then(Value::as_array);
    // Only one answer was requested. The chunk with the usage has no choice.
    if let Some(choice) = choices.and_then(|choices| choices.first()) {
        let message = choice.get("delta").or_else(|| choice.get("message"));
        if let Some(message) = message {
            read_message(message, answer);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            answer.set_finish(finish_reason(reason));
        }
    }
    read_usage(value, answer);
}

fn read_message(message: &Value, answer: &mut AnswerBuilder) {
    for name in ["reasoning_content", "reasoning"] {
        if let Some(text) = find_text(message, name).filter(|text| !text.is_empty()) {
            answer.add_reasoning(text);
            // OpenRouter sends the same text under both names.
            break;
        }
    }
    match message.get("content") {
        Some(Value::String(text)) => answer.add_text(text),
        Some(Value::Array(blocks)) => blocks.iter().for_each(|block| read_block(block, answer)),
        _ => {}
    }
    if let Some(text) = find_text(message, "refusal") {
        answer.add_text(text);
    }
    read_calls(message, answer);
}

/// Mistral's reasoning models send blocks where others send a string.
fn read_block(block: &Value, answer: &mut AnswerBuilder) {
    if let Some(text) = find_text(block, "text") {
        answer.add_text(text);
    }
    match block.get("thinking") {
        Some(Value::String(text)) => answer.add_reasoning(text),
        Some(Value::Array(inner)) => {
            for text in inner.iter().filter_map(|block| find_text(block, "text")) {
                answer.add_reasoning(text);
            }
        }
        _ => {}
    }
}

/// Reads `tool_calls` of a message, of a delta, or of Workers AI's own format, where `name`
/// and `arguments` are not nested in `function`.
pub fn read_calls(message: &Value, answer: &mut AnswerBuilder) {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        let function = call.get("function").unwrap_or(call);
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => json::text(value),
        };
        answer.add_call(&CallPiece {
            key: call.get("index").and_then(Value::as_i64),
            id: find_text(call, "id").unwrap_or_default(),
            name: find_text(function, "name").unwrap_or_default(),
            arguments: &arguments,
        });
        if let Some(extra) = call.get("extra_content") {
            keep_extra(extra, answer);
        }
    }
}

/// Stores the extra content of the newest call. Google puts the signature of a reasoning
/// text there, and refuses the call's result without it.
fn keep_extra(extra: &Value, answer: &mut AnswerBuilder) {
    let Some(newest) = answer.count_calls().checked_sub(1) else {
        return;
    };
    let provider_data = answer
        .provider_data()
        .get_or_insert_with(|| json!({"calls": []}));
    if let Some(calls) = provider_data.get_mut("calls").and_then(Value::as_array_mut) {
        calls.resize(newest, Value::Null);
        calls.push(extra.clone());
    }
}

/// Reads an answer of a class's model, which itself specifies the data to store for it.
pub fn read_own(value: &Value, answer: &mut AnswerBuilder) {
    if let Some(provider_data) = value.get("kept") {
        *answer.provider_data() = Some(provider_data.clone());
    }
    read(value, answer);
}

pub fn read_usage(value: &Value, answer: &mut AnswerBuilder) {
    let Some(usage) = value.get("usage") else {
        return;
    };
    let count = |name: &str| usage.get(name).and_then(Value::as_i64);
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    if input.is_some() || output.is_some() {
        answer.set_usage(TokenUsage {
            input_tokens: input.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cached_input_tokens: count_cached(usage).unwrap_or_default(),
        });
    }
}

/// The tokens from the provider's cache: by OpenAI's name, by DeepSeek's, and by
/// Moonshot's. All of them also count these tokens in `prompt_tokens`.
fn count_cached(usage: &Value) -> Option<i64> {
    let details = usage.get("prompt_tokens_details");
    details
        .and_then(|details| details.get("cached_tokens"))
        .or_else(|| usage.get("prompt_cache_hit_tokens"))
        .or_else(|| usage.get("cached_tokens"))
        .and_then(Value::as_i64)
}

pub fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "tool_calls" | "tool_call" | "function_call" => FinishReason::ToolCalls,
        "error" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}

fn find_text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
