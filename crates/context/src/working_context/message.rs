//! Context messages, and the conversions between them, events and stored messages.

use base::action::{Action, Role, StoredAction};
use models::message::ContextMessage;
use serde_json::Value;

use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject};
use base::part::{PartKind, ToolState, field};
use conversation::log::row::EventRow;
use conversation::log::tool::{CheckedTool, ToolCall};
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
    message.kept = note.kept.map(Box::new);
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
            kept: row.note()?.kept.map(Box::new),
            ..ContextMessage::of_text(role, row.content.clone())
        }]);
    };
    let mut unfolding = Unfolding::default();
    for part in parts {
        unfolding.take(part);
    }
    let mut messages = unfolding.finish();
    let note = row.note()?;
    // The data belongs to the whole message.
    let mut said = messages
        .iter_mut()
        .filter(|message| message.role == Role::Assistant);
    if let (Some(only), None) = (said.next(), said.next()) {
        only.kept = note.kept.map(Box::new);
    }
    // A caller's history may claim that the assistant wrote it.
    if let Some(untrusted) = note.untrusted {
        let said = messages.iter_mut();
        let said = said.filter(|message| message.role == Role::Assistant);
        said.for_each(|message| message.untrusted = Some(untrusted.clone()));
    }
    Ok(messages)
}

/// An assistant's message of the AI SDK while it is converted to context messages.
#[derive(Default)]
struct Unfolding {
    done: Vec<ContextMessage>,
    text: Vec<String>,
    calls: Vec<ToolCall>,
    results: Vec<ContextMessage>,
}

impl Unfolding {
    fn take(&mut self, part: &Value) {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        match text(field::KIND).map(PartKind::parse) {
            Some(PartKind::Text) => {
                // Text after a call was written with the call's result known, so it
                // starts a new message.
                if !self.calls.is_empty() {
                    self.close();
                }
                self.text.extend(text(field::TEXT).map(str::to_owned));
            }
            Some(PartKind::StepStart) if !self.calls.is_empty() => self.close(),
            Some(kind) => {
                let name = kind.find_tool(text(field::TOOL_NAME));
                if let (Some(name), Some(id)) = (name, text(field::CALL_ID)) {
                    self.take_tool(name, id, part);
                }
            }
            None => {}
        }
    }

    fn take_tool(&mut self, name: &str, id: &str, part: &Value) {
        let (Ok(name), Ok(id)) = (Id::parse(name.to_owned()), Id::parse(id.to_owned())) else {
            return;
        };
        let input = part.get(field::INPUT).filter(|input| input.is_object());
        let arguments = input.map_or_else(|| "{}".to_owned(), json::text);
        let Ok(arguments) = json::decode::<JsonObject>(&arguments) else {
            return;
        };
        let state = part.get(field::STATE).and_then(Value::as_str);
        let (content, is_error) = match state.and_then(ToolState::find) {
            Some(ToolState::OutputAvailable) => (part.get(field::OUTPUT).map(as_text), None),
            Some(ToolState::OutputError) => (part.get(field::ERROR_TEXT).map(as_text), Some(true)),
            _ => (None, None),
        };
        if let Some(content) = content {
            self.results.push(ContextMessage {
                tool_call_id: Some(id.clone()),
                tool_name: Some(name.clone()),
                is_error,
                ..ContextMessage::of_text(Role::Tool, content)
            });
        }
        self.calls.push(ToolCall {
            id,
            name,
            arguments,
        });
    }

    fn close(&mut self) {
        let content = std::mem::take(&mut self.text).join("\n");
        let calls = std::mem::take(&mut self.calls);
        if !content.is_empty() || !calls.is_empty() {
            self.done.push(ContextMessage {
                tool_calls: (!calls.is_empty()).then_some(calls),
                ..ContextMessage::of_text(Role::Assistant, content)
            });
        }
        self.done.append(&mut self.results);
    }

    fn finish(mut self) -> Vec<ContextMessage> {
        self.close();
        self.done
    }
}

/// A tool's output as a model reads it.
fn as_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| json::text(value), str::to_owned)
}
