//! Sums the usage that a provider reports over the requests of one turn, as JSON objects.

use serde_json::{Map, Value};

use base::json::json;
use models::TokenUsage;

/// Adds the numbers of `more` to those of `sum`, in nested objects, too. For any other value, the
/// newest counts.
pub fn add(sum: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        let total = match (sum.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => {
                add(inner, more);
                continue;
            }
            (Some(Value::Number(so_far)), Value::Number(more)) => {
                match (so_far.as_i64(), more.as_i64()) {
                    (Some(so_far), Some(more)) => Value::from(so_far.saturating_add(more)),
                    _ => value.clone(),
                }
            }
            (Some(so_far), Value::Null) => so_far.clone(),
            _ => value.clone(),
        };
        sum.insert(name.clone(), total);
    }
}

/// Overwrites fields of `usage` with those of `newer`: providers send running totals. A `null`
/// overwrites nothing.
pub fn renew(usage: &mut Map<String, Value>, newer: &Map<String, Value>) {
    for (name, value) in newer {
        if !value.is_null() || !usage.contains_key(name) {
            usage.insert(name.clone(), value.clone());
        }
    }
}

/// Usage in the format of Chat Completions.
pub fn chat_usage(usage: TokenUsage) -> Map<String, Value> {
    object(json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens}
    }))
}

/// Usage in the format of Messages, which counts cached input separately.
pub fn messages_usage(usage: TokenUsage) -> Map<String, Value> {
    object(json!({
        "input_tokens": usage.input_tokens - usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "cache_creation_input_tokens": 0
    }))
}

/// Sets a field of a value that is an object.
pub fn set(value: &mut Value, name: &str, to: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(name.to_owned(), to);
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
