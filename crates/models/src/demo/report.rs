//! The demo model's answers to tool results.

use serde_json::Value;

use super::{cut, quote};
use crate::message::ContextMessage;
use base::action::Role;
use base::json;
use conversation::log::tool::ToolCall;

/// The most characters of a document, or of search results, that are repeated.
const MAX_OUTPUT_CHARS: usize = 1_500;

/// The demo's sentences about the tool results at the end of the conversation.
pub fn report(messages: &[ContextMessage]) -> String {
    let since = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let answer = since.and_then(|index| messages.get(index));
    let calls = answer.map(ContextMessage::calls).unwrap_or_default();
    let results = messages.iter().skip(since.map_or(0, |index| index + 1));
    let sentences: Vec<String> = results
        .filter(|message| message.role == Role::Tool)
        .map(|result| {
            let id = result.tool_call_id.as_ref();
            sentence(result, calls.iter().find(|call| Some(&call.id) == id))
        })
        .collect();
    sentences.join("\n\n")
}

fn sentence(result: &ContextMessage, call: Option<&ToolCall>) -> String {
    let name = call
        .map(|call| call.name.as_str())
        .or(result.tool_name.as_ref().map(|name| name.as_str()))
        .unwrap_or("the tool");
    let argument = |name: &str| -> String {
        let arguments = call.map(|call| call.arguments.as_str()).unwrap_or_default();
        let arguments = json::decode_tree(arguments).unwrap_or_default();
        let word = arguments.get(name).and_then(Value::as_str);
        quote(word.unwrap_or_default())
    };
    let output = cut(result.content.trim(), MAX_OUTPUT_CHARS);
    if result.is_error == Some(true) {
        return format!("`{name}` failed: {output}");
    }
    match name {
        "set_context" => format!(
            "I wrote it into `{}`: {}",
            argument("label"),
            argument("content")
        ),
        "session_search" | "search_context" if output.is_empty() => {
            format!("I found nothing about “{}”.", argument("query"))
        }
        "session_search" | "search_context" => {
            format!("About “{}” I found:\n{output}", argument("query"))
        }
        "load_context" => format!("I loaded `{}`. It contains:\n{output}", argument("key")),
        "unload_context" => format!("I unloaded `{}`.", argument("key")),
        _ if output.is_empty() => format!("`{name}` returned nothing."),
        _ => format!("`{name}` returned: {output}"),
    }
}
