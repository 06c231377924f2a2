//! Collects what a chunk of Chat Completions, or a whole completion, contains besides its
//! text and calls, in the format of Responses: refusals, annotations, log probabilities,
//! reasoning tokens.

use serde_json::{Map, Value};

use crate::numbers::object;
use base::json;

#[derive(Default)]
pub struct ExtraOutput {
    /// The refusal text of the newest chunk.
    refusal: Option<String>,
    /// The annotations of the next text.
    pub annotations: Vec<Value>,
    pub logprobs: Vec<Value>,
    /// The total of all chunks.
    pub reasoning_tokens: i64,
    pub service_tier: Option<Value>,
}

impl ExtraOutput {
    /// Reads a chunk, or a whole completion, as it arrived. Must be called before its text
    /// is processed.
    pub fn add(&mut self, json: &str) {
        let Ok(mut value) = json::decode_tree(json) else {
            return;
        };
        let reasoning = value.get("usage").and_then(|usage| {
            usage
                .get("completion_tokens_details")?
                .get("reasoning_tokens")
        });
        let reasoning = reasoning.and_then(Value::as_i64).unwrap_or_default();
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(reasoning.max(0));
        if let Some(tier @ Value::String(_)) = value.get_mut("service_tier") {
            self.service_tier = Some(tier.take());
        }
        self.refusal = None;
        let Some(choice) = value
            .get_mut("choices")
            .and_then(|choices| choices.get_mut(0))
        else {
            return;
        };
        if let Some(Value::Array(tokens)) = choice
            .get_mut("logprobs")
            .and_then(|logprobs| logprobs.get_mut("content"))
        {
            self.logprobs.append(tokens);
        }
        let whole = if choice.get("delta").is_some() {
            "delta"
        } else {
            "message"
        };
        let Some(message) = choice.get_mut(whole) else {
            return;
        };
        if let Some(Value::Array(annotations)) = message.get_mut("annotations") {
            let flat = annotations.drain(..).map(flat_annotation);
            self.annotations.extend(flat);
        }
        if let Some(Value::String(refusal)) = message.get_mut("refusal").map(Value::take) {
            self.refusal = Some(refusal);
        }
    }

    /// Whether this text of the newest chunk is a refusal.
    pub fn is_refusal(&self, text: &str) -> bool {
        self.refusal.as_deref() == Some(text)
    }
}

/// An annotation without the wrapper object that only Chat Completions uses.
fn flat_annotation(annotation: Value) -> Value {
    let mut annotation: Map<String, Value> = object(annotation);
    let kind = annotation.get("type").and_then(Value::as_str);
    let inner = kind
        .map(str::to_owned)
        .and_then(|kind| annotation.remove(&kind));
    annotation.extend(inner.map(object).unwrap_or_default());
    Value::Object(annotation)
}
