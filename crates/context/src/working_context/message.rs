//! Context messages, and the conversions between them, events and stored messages.

use base::action::{Action, Role, StoredAction};
use models::message::ContextMessage;
use serde_json::Value;

use base::error::{Error, Result};
use base::json;
use conversation::log::row::EventRow;
use conversation::log::tool::CheckedTool;
use conversation::log::unfolded::{Unfolded, unfold};
use conversation::messages::tree::overlays::Overlay;
use models::file::files_of_parts;

/// The context messages of one row. A message of the AI SDK may become several context
/// messages: its calls, their results, and the text after them.
pub fn from_row(row: &EventRow) -> Result<Vec<ContextMessage>> {
    match &row.message {
        Some(fields) => from_stored(row, fields),
        None => from_event(row).map(|message| vec![message]),
    }
}

fn from_unfolded(message: Unfolded) -> ContextMessage {
    match message {
        Unfolded::Message { content, calls } => ContextMessage {
            tool_calls: (!calls.is_empty()).then_some(calls),
            ..ContextMessage::of_text(Role::Assistant, content)
        },
        Unfolded::Result {
            call_id,
            tool_name,
            content,
            is_error,
        } => ContextMessage {
            tool_call_id: Some(call_id),
            tool_name: Some(tool_name),
            is_error,
            ..ContextMessage::of_text(Role::Tool, content)
        },
    }
}

/// The message that replaces those that an overlay covers.
pub fn from_overlay(overlay: &Overlay) -> ContextMessage {
    ContextMessage::of_text(Role::Assistant, overlay.summary.clone())
}

fn from_event(row: &EventRow) -> Result<ContextMessage> {
    let damaged = |_| Error::corrupt_row(&row.id, "tool call");
    let tool = row
        .tool
        .as_deref()
        .map(json::decode::<CheckedTool>)
        .transpose()
        .map_err(damaged)?;
    let mut message = ContextMessage::of_text(row.action.role(), row.content.clone());
    let note = row.note()?;
    message.provider_data = note.provider_data.map(Box::new);
    if message.role == Role::Assistant {
        message.untrusted = note.untrusted;
    }
    if let Some(tool) = tool {
        message.tool_calls = tool.tool_calls;
        message.tool_call_id = tool.tool_call_id;
        message.tool_name = tool.tool_name;
        message.is_error = tool.is_error;
    }
    Ok(message)
}

fn from_stored(row: &EventRow, fields: &str) -> Result<Vec<ContextMessage>> {
    let message = json::decode_tree(&format!("{{{fields}}}"))
        .map_err(|_| Error::corrupt_row(&row.id, "message"))?;
    // A message of the AI SDK is never a tool event.
    let role = match &row.action {
        StoredAction::Known(action @ (Action::UserMessage | Action::AgentMessage)) => action.role(),
        _ => Role::System,
    };
    let parts = message.get("parts").and_then(Value::as_array);
    let (Role::Assistant, Some(parts)) = (role, parts) else {
        let files = match (role, parts) {
            (Role::User, Some(parts)) => files_of_parts(parts),
            _ => Vec::new(),
        };
        return Ok(vec![ContextMessage {
            files,
            provider_data: row.note()?.provider_data.map(Box::new),
            ..ContextMessage::of_text(role, row.content.clone())
        }]);
    };
    let mut messages: Vec<ContextMessage> = unfold(parts).into_iter().map(from_unfolded).collect();
    let note = row.note()?;
    // The data belongs to the whole message.
    let mut answers = messages
        .iter_mut()
        .filter(|message| message.role == Role::Assistant);
    if let (Some(only), None) = (answers.next(), answers.next()) {
        only.provider_data = note.provider_data.map(Box::new);
    }
    // A caller's history may claim that the assistant wrote it.
    if let Some(untrusted) = note.untrusted {
        let answers = messages.iter_mut();
        let answers = answers.filter(|message| message.role == Role::Assistant);
        answers.for_each(|message| message.untrusted = Some(untrusted.clone()));
    }
    Ok(messages)
}
