//! Reads an answer of OpenAI's Responses API: the events of a stream, or the whole answer.
//! The items of the answer, in order, are what the provider expects back with the next
//! request.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::answer::{AnswerBuilder, CallPiece};
use super::http_error::{self, ProviderError};
use super::{FinishReason, TokenUsage};
use base::json;
use conversation::log::note::MAX_PROVIDER_DATA_BYTES;

pub const FUNCTION_CALL: &str = "function_call";

const MESSAGE: &str = "message";

/// The separator between the texts of an answer, and between the parts of a reasoning
/// summary.
const BETWEEN: &str = "\n\n";

/// The longest image that is stored with an answer, in base64. A longer one is referenced
/// by the provider's id.
const MAX_IMAGE_BYTES: usize = 8 << 10;

#[derive(Default)]
pub struct ResponsesReader {
    /// The completed items, with their output indexes.
    items: Vec<(i64, Value)>,
    /// The item and the part of the newest text.
    text_at: Option<(i64, i64)>,
    /// The output indexes of calls whose arguments were streamed.
    in_pieces: HashSet<i64>,
}

pub fn kind_of(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The error in an event or in a whole answer.
pub fn find_problem(value: &Value) -> Option<ProviderError> {
    match kind_of(value) {
        "response.failed" => {
            let error = value.get("response").and_then(|it| it.get("error"));
            let error = error.filter(|error| !error.is_null());
            let error = error.cloned().unwrap_or_else(|| json!({}));
            http_error::find_problem(&json!({"error": error}))
        }
        "error" if value.get("error").is_none() => http_error::find_problem(&json!({"error": {
            "code": value.get("code"),
            "message": value.get("message")
        }})),
        _ => http_error::find_problem(value),
    }
}

/// The texts of an item, if it is a message.
pub fn texts_of(item: &Value) -> Vec<&str> {
    let content = item.get("content").and_then(Value::as_array);
    let parts = content.filter(|_| is_message(item)).into_iter().flatten();
    let text = |part| {
        let named = |name: &str| Value::get(part, name).and_then(Value::as_str);
        named("text").or_else(|| named("refusal"))
    };
    parts
        .filter_map(text)
        .filter(|text| !text.is_empty())
        .collect()
}

/// A message that a caller wrote may have no `type`.
fn is_message(item: &Value) -> bool {
    matches!(kind_of(item), MESSAGE | "")
}

impl ResponsesReader {
    /// The event to forward to a caller. The last event repeats all items, which are long
    /// and were already sent, so they are omitted from it.
    pub fn event(&self, value: &Value) -> String {
        let has_output = value
            .get("response")
            .is_some_and(|it| it.get("output").is_some());
        if !has_output || self.items.is_empty() {
            return json::text(value);
        }
        let mut short = value.clone();
        if let Some(output) = short
            .get_mut("response")
            .and_then(|it| it.get_mut("output"))
        {
            *output = json!([]);
        }
        json::text(&short)
    }

    /// Reads an event of a stream, or a whole answer.
    pub fn read(&mut self, value: &Value, answer: &mut AnswerBuilder) {
        let number = |name: &str| value.get(name).and_then(Value::as_i64).unwrap_or_default();
        let at = number("output_index");
        let delta = value
            .get("delta")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let item = value.get("item").unwrap_or(&Value::Null);
        match kind_of(value) {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.add_text((at, number("content_index")), delta, answer);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                answer.add_reasoning(delta);
            }
            "response.reasoning_summary_part.added" if number("summary_index") > 0 => {
                answer.add_reasoning(BETWEEN);
            }
            "response.output_item.added" if kind_of(item) == FUNCTION_CALL => {
                add_call(at, item, "", answer);
            }
            "response.function_call_arguments.delta" => {
                self.in_pieces.insert(at);
                answer.add_call(&CallPiece {
                    key: Some(at),
                    arguments: delta,
                    ..CallPiece::default()
                });
            }
            "response.output_item.done" => {
                if kind_of(item) == FUNCTION_CALL {
                    self.complete_call(at, item, answer);
                }
                self.items.push((at, item.clone()));
            }
            "response.completed" | "response.incomplete" => {
                if let Some(response) = value.get("response") {
                    self.read_end(response, answer);
                }
            }
            "" if value.get("output").is_some() => self.read_end(value, answer),
            _ => {}
        }
    }

    fn add_text(&mut self, part: (i64, i64), text: &str, answer: &mut AnswerBuilder) {
        if text.is_empty() {
            return;
        }
        if self.text_at.is_some_and(|before| before != part) {
            answer.add_text(BETWEEN);
        }
        self.text_at = Some(part);
        answer.add_text(text);
    }

    fn complete_call(&self, at: i64, item: &Value, answer: &mut AnswerBuilder) {
        let has_pieces = self.in_pieces.contains(&at);
        if !has_pieces {
            let arguments = item.get("arguments").and_then(Value::as_str);
            add_call(at, item, arguments.unwrap_or_default(), answer);
        }
        answer.complete_call(at);
    }

    /// Reads the end of an answer, or a whole answer.
    fn read_end(&mut self, response: &Value, answer: &mut AnswerBuilder) {
        let output = response.get("output").and_then(Value::as_array);
        if self.items.is_empty() {
            for (at, item) in (0..).zip(output.into_iter().flatten()) {
                self.read_item(at, item, answer);
                self.items.push((at, item.clone()));
            }
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            let count = |name: &str| usage.get(name).and_then(Value::as_i64).unwrap_or_default();
            let details = usage.get("input_tokens_details");
            let cached = details.and_then(|details| details.get("cached_tokens")?.as_i64());
            answer.set_usage(TokenUsage {
                input_tokens: count("input_tokens"),
                output_tokens: count("output_tokens"),
                cached_input_tokens: cached.unwrap_or_default(),
            });
        }
        self.items.sort_by_key(|(at, _)| *at);
        let items = std::mem::take(&mut self.items);
        *answer.provider_data() = provider_data(items.into_iter().map(|(_, item)| item).collect());
        answer.set_finish(finish_reason(response));
        answer.close();
    }

    fn read_item(&mut self, at: i64, item: &Value, answer: &mut AnswerBuilder) {
        match kind_of(item) {
            MESSAGE => {
                for (part, text) in (0..).zip(texts_of(item)) {
                    self.add_text((at, part), text, answer);
                }
            }
            "reasoning" => {
                let texts = |name: &str| item.get(name).and_then(Value::as_array);
                let texts = texts("summary")
                    .into_iter()
                    .chain(texts("content"))
                    .flatten();
                let texts = texts.filter_map(|part| part.get("text")?.as_str());
                answer.add_reasoning(&texts.collect::<Vec<_>>().join(BETWEEN));
            }
            FUNCTION_CALL => self.complete_call(at, item, answer),
            _ => {}
        }
    }
}

fn add_call(at: i64, item: &Value, arguments: &str, answer: &mut AnswerBuilder) {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    answer.add_call(&CallPiece {
        key: Some(at),
        id: text("call_id"),
        name: text("name"),
        arguments,
    });
}

fn finish_reason(response: &Value) -> FinishReason {
    let details = response.get("incomplete_details");
    let reason = details.and_then(|details| details.get("reason")?.as_str());
    match (response.get("status").and_then(Value::as_str), reason) {
        (Some("incomplete"), Some("max_output_tokens")) => FinishReason::Length,
        (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
        (Some("incomplete"), _) => FinishReason::Other,
        _ => FinishReason::Stop,
    }
}

/// The items as the data that is stored with the answer. `None`: the message and its calls
/// contain everything.
fn provider_data(mut items: Vec<Value>) -> Option<Value> {
    let messages = items
        .iter()
        .take_while(|item| kind_of(item) == MESSAGE)
        .count();
    let is_call = |item: &Value| kind_of(item) == FUNCTION_CALL && has_only(item, CALL_FIELDS);
    let is_plain = messages <= 1
        && items.iter().take(messages).all(is_plain_message)
        && items.iter().skip(messages).all(is_call);
    if is_plain {
        return None;
    }
    for item in &mut items {
        let is_long = |result: &Value| result.as_str().is_some_and(|it| it.len() > MAX_IMAGE_BYTES);
        if kind_of(item) == "image_generation_call"
            && item.get("result").is_some_and(is_long)
            && let Some(fields) = item.as_object_mut()
        {
            fields.remove("result");
        }
    }
    let bytes = |items: &[Value]| {
        items
            .iter()
            .map(|item| json::text(item).len())
            .sum::<usize>()
    };
    if bytes(&items) + 100 > MAX_PROVIDER_DATA_BYTES {
        shorten(&mut items);
    }
    Some(json!({"items": items}))
}

const CALL_FIELDS: &[&str] = &["id", "type", "status", "call_id", "name", "arguments"];

/// Removes what the provider doesn't need: the results of its searches and programs, and
/// the tool lists of servers, which it then requests again.
fn shorten(items: &mut Vec<Value>) {
    items.retain(|item| kind_of(item) != "mcp_list_tools");
    for item in items {
        let is_searched = matches!(kind_of(item), "file_search_call" | "code_interpreter_call");
        if let (Some(fields), true) = (item.as_object_mut(), is_searched) {
            for name in ["results", "outputs"] {
                if let Some(value) = fields.get_mut(name) {
                    *value = Value::Null;
                }
            }
        }
    }
}

fn has_only(item: &Value, known: &[&str]) -> bool {
    let fields = item.as_object();
    fields.is_some_and(|fields| fields.keys().all(|name| known.contains(&name.as_str())))
}

/// A message with a single text part and nothing else.
fn is_plain_message(item: &Value) -> bool {
    const FIELDS: &[&str] = &["id", "type", "status", "role", "content"];
    let parts = item.get("content").and_then(Value::as_array);
    let is_nothing = |value: Option<&Value>| {
        value.is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty))
    };
    let is_plain_part = |part: &Value| {
        kind_of(part) == "output_text"
            && is_nothing(part.get("annotations"))
            && is_nothing(part.get("logprobs"))
    };
    has_only(item, FIELDS)
        && parts.is_some_and(|parts| parts.len() == 1 && parts.iter().all(is_plain_part))
}
