//! Requests in the APIs of OpenAI and Anthropic, from their bodies to their answers, with a scripted
//! model behind the real adapters.

mod answers;
mod as_a_turn;
mod busy;
mod history;
mod hostile;
mod responses;
mod responses_conversion;
mod responses_native;
mod rights;

use serde_json::{Value, json};

use crate::Alice;
pub use crate::shared::provider::{headers, in_session};
use base::outbound::CallFailure;
use base::testing::ScriptedAnswer;

type Answered = Result<ScriptedAnswer, CallFailure>;

/// An unstreamed completion of OpenAI.
pub fn completion(message: Value, reason: &str) -> Answered {
    Ok(ScriptedAnswer::json(&json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m-2",
        "service_tier": "default",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    }))
    .unwrap())
}

pub fn unstreamed_text(text: &str) -> Answered {
    completion(
        json!({"role": "assistant", "content": text, "refusal": null, "annotations": []}),
        "stop",
    )
}

pub fn unstreamed_calls(calls: &[(&str, &str, Value)]) -> Answered {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    completion(
        json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": calls}),
        "tool_calls",
    )
}

/// An unstreamed message of Anthropic.
pub fn anthropic_message(content: Value, reason: &str) -> Answered {
    Ok(ScriptedAnswer::json(&json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "container": null,
        "usage": {"input_tokens": 10, "output_tokens": 2, "service_tier": "standard"}
    }))
    .unwrap())
}

pub fn anthropic_text(text: &str) -> Answered {
    anthropic_message(
        json!([{"type": "text", "text": text, "citations": null}]),
        "end_turn",
    )
}

pub fn chat(messages: Value) -> Value {
    json!({"model": "m", "messages": messages})
}

pub fn claude(messages: Value) -> Value {
    json!({"model": "claude-x", "max_tokens": 100, "messages": messages})
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Looks.",
        "strict": true, "parameters": {"type": "object", "properties": {}}}})
}

/// A block that the model may write, so that it has a tool of ours.
pub fn remember(alice: &Alice) {
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "description": "What to remember"}),
    );
}

pub fn set_context(id: &str, content: &str) -> (String, String, Value) {
    let arguments = json!({"label": "memory", "content": content});
    (id.to_owned(), "set_context".to_owned(), arguments)
}
