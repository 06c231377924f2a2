//! The estimated tokens of an event, as a model is sent it. `path_tokens` sums them up
//! (`totals.rs`), so the estimates don't depend on a class's own counter.

use super::event::NewEvent;
use super::tool::ToolCall;
use super::unfolded::{Unfolded, unfold};
use crate::file::{File, files_of_parts};
use base::action::{Action, Role};
use base::json;
use base::tokens::{estimate, estimate_output, without_counter};
use serde_json::Value;

/// The estimated tokens of an event to append.
pub fn of_event(event: &NewEvent) -> i64 {
    let content = event.content.as_deref().unwrap_or_default();
    let calls = event.tool_calls.as_deref().unwrap_or_default();
    match &event.message {
        Some(message) => of_message(event.action, content, &message.fields),
        None => without_counter(|| of_content(event.action.role(), content) + of_calls(calls)),
    }
}

/// The estimated tokens of a message of the AI SDK. `fields`: the content of its JSON object.
pub fn of_message(action: Action, content: &str, fields: &str) -> i64 {
    let role = match action {
        Action::UserMessage | Action::AgentMessage => action.role(),
        _ => Role::System,
    };
    without_counter(|| match role {
        Role::System => of_content(role, content),
        Role::User | Role::Assistant | Role::Tool => {
            let message = json::decode_tree(&["{", fields, "}"].concat()).ok();
            let parts = message.as_ref().and_then(|message| message.get("parts"));
            match (role, parts.and_then(Value::as_array)) {
                (Role::Assistant, Some(parts)) => unfold(parts).iter().map(of_unfolded).sum(),
                (_, parts) => {
                    let files = files_of_parts(parts.map_or(&[], Vec::as_slice));
                    of_content(role, content) + files.iter().map(File::tokens).sum::<i64>()
                }
            }
        }
    })
}

/// The estimated tokens of a tool's result that consists of this text.
pub fn of_result(content: &str) -> i64 {
    without_counter(|| of_content(Role::Tool, content))
}

fn of_unfolded(message: &Unfolded) -> i64 {
    match message {
        Unfolded::Message { content, calls } => {
            of_content(Role::Assistant, content) + of_calls(calls)
        }
        Unfolded::Result { content, .. } => of_content(Role::Tool, content),
    }
}

/// The estimated tokens of a message's content.
pub fn of_content(role: Role, content: &str) -> i64 {
    match role {
        Role::Tool => estimate_output(content),
        Role::User | Role::Assistant | Role::System => estimate(content),
    }
}

/// The estimated tokens of calls.
pub fn of_calls(calls: &[ToolCall]) -> i64 {
    let calls = calls
        .iter()
        .map(|call| estimate(call.name.as_str()) + estimate(call.arguments.as_str()));
    calls.sum()
}
