//! An assistant's message of the AI SDK as a model is sent it: its calls, their results, and the
//! text after them are messages of their own.

use super::tool::ToolCall;
use base::ids::Id;
use base::json::{self, JsonObject};
use base::part::{PartKind, ToolState, field};
use serde_json::Value;

/// One of the messages that a stored message becomes.
pub enum Unfolded {
    Message {
        content: String,
        calls: Vec<ToolCall>,
    },
    Result {
        call_id: Id,
        tool_name: Id,
        content: String,
        is_error: Option<bool>,
    },
}

/// The messages that the parts of an assistant's message become, in order.
pub fn unfold(parts: &[Value]) -> Vec<Unfolded> {
    let mut unfolding = Unfolding::default();
    for part in parts {
        unfolding.add(part);
    }
    unfolding.finish()
}

#[derive(Default)]
struct Unfolding {
    done: Vec<Unfolded>,
    text: Vec<String>,
    calls: Vec<ToolCall>,
    results: Vec<Unfolded>,
}

impl Unfolding {
    fn add(&mut self, part: &Value) {
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
                    self.add_tool(name, id, part);
                }
            }
            None => {}
        }
    }

    fn add_tool(&mut self, name: &str, id: &str, part: &Value) {
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
            self.results.push(Unfolded::Result {
                call_id: id.clone(),
                tool_name: name.clone(),
                content,
                is_error,
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
            self.done.push(Unfolded::Message { content, calls });
        }
        self.done.append(&mut self.results);
    }

    fn finish(mut self) -> Vec<Unfolded> {
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
