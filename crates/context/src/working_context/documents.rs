//! Documents in the context. A loaded document is in the log, as the answer of
//! `load_context`. An unloaded document is replaced by a note. A loaded document that is
//! in no message of the window is added to the system instructions. Only copies are
//! changed.

use std::collections::{HashMap, HashSet};

use super::truncate::cut_middle;
use super::window::NumberedMessage;
use base::action::Role;
use base::json;
use base::quoted::{Untrusted, quote, without_rules};
use conversation::log::tool::ToolCall;
use memory::skills::loaded::LoadedSkill;
use models::message::ContextMessage;

/// The tool whose answers are documents.
const TOOL: &str = "load_context";

/// Whether the message is a loaded document, which is recognized by its exact text.
pub fn is_document(message: &ContextMessage, documents: &[LoadedSkill]) -> bool {
    let content = Some(&message.content);
    message.role == Role::Tool
        && message
            .tool_name
            .as_ref()
            .is_none_or(|name| name.as_str() == TOOL)
        && documents
            .iter()
            .any(|document| document.content.as_ref() == content)
}

/// The changes to make to messages after the others are shortened.
#[derive(Default)]
pub struct Documents {
    /// The indexes of messages, and their new content.
    replaced: Vec<(usize, String)>,
    /// Documents to add to the system instructions.
    pub instructions: Vec<String>,
}

/// Finds the documents in the window. Needs the messages before they are shortened,
/// because a document is recognized by its exact text.
pub fn find_documents(messages: &[NumberedMessage], documents: &[LoadedSkill]) -> Documents {
    let mut found = Documents::default();
    if documents.is_empty() {
        return found;
    }
    let mut named = find_named(messages);
    let mut newest_shown: HashSet<usize> = HashSet::new();
    // Keeps a document in its newest answer. An older answer thus changes only once.
    for (message_index, numbered) in messages.iter().enumerate().rev() {
        let message = &numbered.message;
        if message.role != Role::Tool || message.is_error == Some(true) {
            continue;
        }
        let Some((label, key)) = named.remove(&message_index) else {
            continue;
        };
        let known = documents
            .iter()
            .position(|document| document.label.to_lowercase() == label && document.key == key);
        let Some((index, document)) =
            known.and_then(|index| documents.get(index).map(|document| (index, document)))
        else {
            continue;
        };
        match &document.content {
            Some(content) if *content == message.content => {
                if newest_shown.insert(index) {
                    found.replaced.push((message_index, content.clone()));
                } else {
                    found
                        .replaced
                        .push((message_index, note(document, "loaded again below")));
                }
            }
            // Either the tool's short answer that the document is loaded already, or an
            // older and short text of the document.
            Some(_) if is_short(&message.content) => {}
            Some(_) => found
                .replaced
                .push((message_index, note(document, "another version is loaded"))),
            None => found.replaced.push((message_index, unloaded(document))),
        }
    }
    for (index, document) in documents.iter().enumerate() {
        if let Some(content) = &document.content
            && !newest_shown.contains(&index)
        {
            found.instructions.push(format!(
                "Loaded document {}/{}:\n\n{}",
                document.label,
                quote(Untrusted::DocumentKey, &document.key),
                without_rules(content)
            ));
        }
    }
    found
}

/// The document of each answer, by the answer's index: the label in lower case, and the key. Each
/// answer follows its call's message.
fn find_named(messages: &[NumberedMessage]) -> HashMap<usize, (String, String)> {
    let mut named = HashMap::new();
    // The calls of the newest message with calls that have no answer yet.
    let mut open: Vec<&ToolCall> = Vec::new();
    for (message_index, numbered) in messages.iter().enumerate() {
        let message = &numbered.message;
        if message.role != Role::Tool {
            open = message.calls().iter().collect();
            continue;
        }
        let id = message.tool_call_id.as_ref();
        let Some(index) = open.iter().position(|call| Some(&call.id) == id) else {
            continue;
        };
        let call = open.remove(index);
        if call.name.as_str() == TOOL
            && let Some(document) = read_call(call.arguments.as_str())
        {
            named.insert(message_index, document);
        }
    }
    named
}

/// The text that replaces a document in an answer of `load_context`. `None`: the answer
/// is not a document, or is the document as it is loaded.
pub fn find_replacement(
    name: &str,
    arguments: &str,
    content: &str,
    documents: &[LoadedSkill],
) -> Option<String> {
    let (label, key) = Some(arguments)
        .filter(|_| name == TOOL)
        .and_then(read_call)?;
    let mut documents = documents.iter();
    let document =
        documents.find(|document| document.label.to_lowercase() == label && document.key == key)?;
    match &document.content {
        Some(loaded) if loaded == content || is_short(content) => None,
        Some(_) => Some(note(document, "another version is loaded")),
        None => Some(unloaded(document)),
    }
}

impl Documents {
    /// Truncates each document to this many characters.
    pub fn cut(&mut self, chars: usize) {
        let replaced = self.replaced.iter_mut().map(|(_, text)| text);
        for text in replaced.chain(&mut self.instructions) {
            if let Some(cut) = cut_middle(text, chars) {
                *text = cut;
            }
        }
    }

    pub fn write_to(self, messages: &mut [NumberedMessage]) {
        for (index, text) in self.replaced {
            if let Some(numbered) = messages.get_mut(index) {
                numbered.message.content = text;
            }
        }
    }
}

/// The label in lower case, and the key.
fn read_call(arguments: &str) -> Option<(String, String)> {
    let arguments = json::decode_tree(arguments).ok()?;
    let text = |name: &str| arguments.get(name)?.as_str().map(str::to_owned);
    Some((text("label")?.trim().to_lowercase(), text("key")?))
}

/// Whether the content is as short as the tool's answer that a document is loaded
/// already.
fn is_short(content: &str) -> bool {
    content.len() < 1_000
}

fn unloaded(document: &LoadedSkill) -> String {
    note(document, "load_context loads it again")
}

fn note(document: &LoadedSkill, what: &str) -> String {
    let state = match document.content {
        Some(_) => "earlier copy",
        None => "unloaded",
    };
    format!(
        "[{state}: {}/{} — {what}]",
        document.label,
        quote(Untrusted::DocumentKey, &document.key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> NumberedMessage {
        let json = format!(
            r#"{{"role":"assistant","toolCalls":[{{"id":"{id}","name":"load_context","arguments":{{"label":"Skills","key":"deploy"}}}}]}}"#
        );
        numbered(serde_json::from_str(&json).unwrap())
    }

    fn answer(id: &str, content: &str) -> NumberedMessage {
        let json = serde_json::json!({"role": "tool", "content": content, "toolCallId": id});
        numbered(serde_json::from_value(json).unwrap())
    }

    fn numbered(message: ContextMessage) -> NumberedMessage {
        NumberedMessage { seq: 1, message }
    }

    fn document(content: Option<&str>) -> LoadedSkill {
        LoadedSkill {
            label: "skills".to_owned(),
            key: "deploy".to_owned(),
            content: content.map(str::to_owned),
        }
    }

    fn arranged(
        mut messages: Vec<NumberedMessage>,
        document: LoadedSkill,
    ) -> (Vec<String>, Vec<String>) {
        let mut documents = find_documents(&messages, &[document]);
        let instructions = std::mem::take(&mut documents.instructions);
        documents.write_to(&mut messages);
        let tools = messages
            .into_iter()
            .filter(|numbered| numbered.message.role == Role::Tool);
        (
            tools.map(|numbered| numbered.message.content).collect(),
            instructions,
        )
    }

    #[test]
    fn a_loaded_document_appears_where_it_was_loaded() {
        let messages = vec![call("1"), answer("1", "The list.")];
        let (tools, instructions) = arranged(messages, document(Some("The list.")));
        assert_eq!(
            (tools, instructions),
            (vec!["The list.".to_owned()], vec![])
        );
    }

    #[test]
    fn an_unloaded_document_is_replaced_by_a_note() {
        let messages = vec![call("1"), answer("1", "The list.")];
        let (tools, instructions) = arranged(messages, document(None));
        assert_eq!(
            tools,
            ["[unloaded: skills/deploy — load_context loads it again]"]
        );
        assert!(instructions.is_empty());
    }

    #[test]
    fn a_reloaded_document_appears_once_at_its_newest_position() {
        let messages = vec![
            call("1"),
            answer("1", "The list."),
            call("2"),
            answer("2", "The list."),
        ];
        let (tools, instructions) = arranged(messages, document(Some("The list.")));
        assert_eq!(
            tools,
            [
                "[earlier copy: skills/deploy — loaded again below]",
                "The list."
            ]
        );
        assert!(instructions.is_empty());
    }

    #[test]
    fn a_document_without_a_position_follows_the_instructions() {
        let (tools, instructions) = arranged(Vec::new(), document(Some("The list.")));
        assert!(tools.is_empty());
        assert_eq!(
            instructions,
            ["Loaded document skills/deploy:\n\nThe list."]
        );
    }
}
