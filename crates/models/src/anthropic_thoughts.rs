//! Thinking blocks of Anthropic's models, which the provider signs. In the steps after a
//! call it requires them unchanged, in their original positions. Blocks without a
//! signature, and those of an interrupted answer, are not stored.
//!
//! The stored data is `{"thoughts": [{"at", "block"}]}`. `at` 0 is before the text; 1, 2 …
//! is after it, before the first, the second … call.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::AnswerBuilder;
use crate::message::ContextMessage;
use base::json::{self, RawValue};

const THOUGHTS: &str = "thoughts";

/// Set while the answer is read: text has started.
const HAS_TEXT: &str = "hasText";

/// A block at a position of an answer.
#[derive(Deserialize)]
pub struct Thought<'a> {
    pub at: usize,
    #[serde(borrow)]
    pub block: &'a RawValue,
}

#[derive(Deserialize)]
struct Thoughts<'a> {
    #[serde(borrow)]
    thoughts: Vec<Thought<'a>>,
}

/// Starts a thinking block.
pub fn begin(index: Option<i64>, block: &Value, answer: &mut AnswerBuilder) {
    let calls = answer.count_calls();
    let provider_data = answer.provider_data().get_or_insert_with(|| json!({}));
    let has_text = provider_data.get(HAS_TEXT).is_some();
    let at = match (has_text, calls) {
        (false, 0) => 0,
        _ => 1 + calls,
    };
    let thought = json!({"at": at, "index": index, "block": block});
    if let Some(thoughts) = provider_data
        .get_mut(THOUGHTS)
        .and_then(Value::as_array_mut)
    {
        thoughts.push(thought);
    } else if let Some(provider_data) = provider_data.as_object_mut() {
        provider_data.insert(THOUGHTS.to_owned(), json!([thought]));
    }
}

/// Appends to a thinking block.
pub fn append(index: Option<i64>, field: &str, delta: &Value, answer: &mut AnswerBuilder) {
    let Some(provider_data) = answer.provider_data() else {
        return;
    };
    let thoughts = provider_data
        .get_mut(THOUGHTS)
        .and_then(Value::as_array_mut);
    let thought = thoughts.and_then(|thoughts| thoughts.last_mut());
    let thought = thought.filter(|thought| thought.get("index") == Some(&json!(index)));
    let block = thought.and_then(|thought| thought.get_mut("block")?.as_object_mut());
    let piece = delta.get(field).and_then(Value::as_str);
    if let (Some(block), Some(piece)) = (block, piece)
        && let Value::String(text) = block.entry(field).or_insert_with(|| json!(""))
    {
        text.push_str(piece);
    }
}

/// Records that the answer has text.
pub fn note_text(answer: &mut AnswerBuilder) {
    let provider_data = answer.provider_data().get_or_insert_with(|| json!({}));
    if let Some(provider_data) = provider_data.as_object_mut() {
        provider_data.insert(HAS_TEXT.to_owned(), Value::Bool(true));
    }
}

/// Reduces the data to what the provider accepts back.
pub fn seal(answer: &mut AnswerBuilder) {
    let Some(mut provider_data) = answer.provider_data().take() else {
        return;
    };
    let Some(Value::Array(thoughts)) = provider_data.get_mut(THOUGHTS).map(Value::take) else {
        return;
    };
    let is_signed = |thought: &Value| {
        let block = thought.get("block");
        let text = |name: &str| block.and_then(|block| block.get(name)?.as_str());
        text("type") == Some("redacted_thinking")
            || text("signature").is_some_and(|it| !it.is_empty())
    };
    if thoughts.is_empty() || !thoughts.iter().all(is_signed) {
        return;
    }
    let mut thoughts = thoughts;
    for thought in thoughts.iter_mut().filter_map(Value::as_object_mut) {
        thought.remove("index");
    }
    *answer.provider_data() = Some(json!({THOUGHTS: thoughts}));
}

/// The thinking blocks that the provider requires with a message.
pub fn of(message: &ContextMessage) -> Vec<Thought<'_>> {
    let provider_data = message.provider_data.as_deref();
    let provider_data = provider_data
        .and_then(|provider_data| json::decode::<Thoughts<'_>>(provider_data.parts.as_str()).ok());
    provider_data
        .map(|provider_data| provider_data.thoughts)
        .unwrap_or_default()
}

/// Whether the message starts with a thinking block, as the provider requires of calls.
pub fn is_thought(message: &ContextMessage) -> bool {
    of(message).first().is_some_and(|thought| thought.at == 0)
}
