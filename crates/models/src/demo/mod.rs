//! The built-in demo: a model for a laptop without an account. It applies a few fixed rules to the
//! last message; the same request always gets the same answer. The demo calls the memory tools, so
//! that everything around a model can be tried. Its answers state that it is a demo, so that nobody
//! takes it for a language model.
//!
//! The demo never calls twice in a row: after a result it reports and stops.

mod command;
mod learn;
mod recall;
mod report;

use serde_json::Value;

use super::answer::{AnswerBuilder, CallPiece};
use super::call_ids::CallIds;
use super::{
    AnswerPart, CONSOLIDATE_REQUEST, LEARN_REQUEST, ModelRequest, SUMMARY_REQUEST, TokenUsage,
    ToolDefinition,
};
use crate::message::ContextMessage;
use base::action::Role;
use base::json::{self, json};
use base::tokens;
use command::Command;

const INTRODUCTION: &str = "I am Session Agent's built-in demo: a few fixed rules, not a language model. To use a real model, set `MODEL` to `workers-ai:<model>`, `openai:<model>` or `anthropic:<model>`. In a class of your own, return a model from `model()`.";

const RULES: &str =
    "Try `remember …`, `what do you remember`, `search …`, `load <key>`, or `call <tool> {json}`.";

/// The block of facts that agents are deployed with.
const FACTS: &str = "facts";

/// Characters of anyone's words that are repeated.
const MAX_QUOTED_CHARS: usize = 500;

/// The most names of tools that are listed.
const MAX_LISTED_TOOLS: usize = 20;

/// The demo's action: a text, or a call of one tool.
enum DemoAction {
    Say(String),
    Call { name: String, arguments: String },
}

pub fn answer(request: &ModelRequest<'_>) -> Vec<AnswerPart> {
    let mut answer = AnswerBuilder::new(CallIds::after(request.messages, request.earlier_calls));
    let mut output = String::new();
    match decide(request) {
        DemoAction::Say(text) => {
            for word in text.split_inclusive(char::is_whitespace) {
                answer.add_text(word);
            }
            output = text;
        }
        DemoAction::Call { name, arguments } => {
            answer.add_call(&CallPiece {
                key: Some(0),
                id: "",
                name: &name,
                arguments: &arguments,
            });
            output.push_str(&arguments);
        }
    }
    answer.set_usage(TokenUsage {
        input_tokens: input_tokens(request),
        output_tokens: tokens::estimate(&output),
        cached_input_tokens: 0,
    });
    answer.close();
    answer.take_parts()
}

fn input_tokens(request: &ModelRequest<'_>) -> i64 {
    let system = request.system.iter().map(String::as_str);
    let system = system.chain(request.reminder).map(tokens::estimate);
    let messages = request.messages.iter().map(|message| {
        let calls = message.calls().iter();
        let calls = calls.map(|call| tokens::estimate(call.arguments.as_str()));
        tokens::estimate(&message.content) + calls.sum::<i64>()
    });
    let tools = request
        .tools
        .iter()
        .map(|tool| tokens::estimate(&tool.description) + tokens::estimate(tool.parameters.get()));
    system.chain(messages).chain(tools).sum()
}

fn decide(request: &ModelRequest<'_>) -> DemoAction {
    // A system message needs no answer.
    let mut newest = request.messages.iter().rev();
    let Some(last) = newest.find(|message| message.role != Role::System) else {
        return DemoAction::Say(INTRODUCTION.to_owned());
    };
    if last.role == Role::User && last.content.starts_with(SUMMARY_REQUEST) {
        return DemoAction::Say(recall::summarize(&last.content));
    }
    if last.role == Role::User && last.content.starts_with(LEARN_REQUEST) {
        return DemoAction::Say(learn::learn(&last.content));
    }
    if last.role == Role::User && last.content.starts_with(CONSOLIDATE_REQUEST) {
        return DemoAction::Say(learn::consolidate(&last.content));
    }
    let deed = match last.role {
        Role::User => obey(request, last),
        Role::Tool => DemoAction::Say(report::report(request.messages)),
        _ => DemoAction::Say("There is nothing new to answer.".to_owned()),
    };
    match deed {
        DemoAction::Say(text) if is_first_answer(request.messages) => {
            DemoAction::Say(format!("{INTRODUCTION}\n\n{text}"))
        }
        deed => deed,
    }
}

fn is_first_answer(messages: &[ContextMessage]) -> bool {
    let is_answer =
        |message: &ContextMessage| message.role == Role::Assistant && !message.content.is_empty();
    !messages.iter().any(is_answer)
}

fn obey(request: &ModelRequest<'_>, last: &ContextMessage) -> DemoAction {
    match Command::parse(&last.content) {
        Command::Remember(content) => remember(request, content),
        Command::Recall => DemoAction::Say(recall::recall(request)),
        Command::Search(query) => search(request, query),
        Command::Ask(question) => match find_tool(request, "search_context") {
            Some(tool) if labels(tool).iter().any(|label| label == FACTS) => {
                ask_facts(&tool.name, question)
            }
            _ => DemoAction::Say(echo(request, last)),
        },
        Command::Load(words) => load(request, "load_context", words),
        Command::Unload(words) => load(request, "unload_context", words),
        Command::Call { name, arguments } => call(request, name, arguments),
        Command::Other => DemoAction::Say(echo(request, last)),
    }
}

fn find_tool<'a>(request: &ModelRequest<'a>, name: &str) -> Option<&'a ToolDefinition> {
    request.tools.iter().find(|tool| tool.name == name)
}

/// The labels that a memory tool accepts.
fn labels(tool: &ToolDefinition) -> Vec<String> {
    let schema = json::decode_tree(tool.parameters.get()).unwrap_or_default();
    let labels = schema.pointer("/properties/label/enum");
    let labels = labels.and_then(Value::as_array).into_iter().flatten();
    labels
        .filter_map(|label| label.as_str().map(str::to_owned))
        .collect()
}

/// The preferred label where there is one, else the first.
fn choose_label(tool: &ToolDefinition, preferred: &str) -> String {
    let labels = labels(tool);
    let found = labels.iter().find(|label| *label == preferred);
    let found = found.or(labels.first());
    found.map_or_else(|| preferred.to_owned(), Clone::clone)
}

fn remember(request: &ModelRequest<'_>, content: &str) -> DemoAction {
    if content.is_empty() {
        return DemoAction::Say("Remember what? Say `remember I like tea`.".to_owned());
    }
    let Some(tool) = find_tool(request, "set_context") else {
        return DemoAction::Say(
            "I can't store it: there is no writable block. Define one with \
                                `defineBlock {\"label\": \"memory\", \"kind\": \"writable\"}`."
                .to_owned(),
        );
    };
    DemoAction::Call {
        name: tool.name.clone(),
        arguments: json::text(&json!({
            "label": choose_label(tool, "memory"), "content": content, "action": "append"
        })),
    }
}

/// Looks a question up among the facts that the agent has learned.
fn ask_facts(tool: &str, question: &str) -> DemoAction {
    DemoAction::Call {
        name: tool.to_owned(),
        arguments: json::text(&json!({"label": FACTS, "query": question})),
    }
}

fn search(request: &ModelRequest<'_>, query: &str) -> DemoAction {
    if query.is_empty() {
        return DemoAction::Say("Search for what? Say `search Lisbon`.".to_owned());
    }
    if let Some(tool) = find_tool(request, "session_search") {
        return DemoAction::Call {
            name: tool.name.clone(),
            arguments: json::text(&json!({"query": query})),
        };
    }
    let Some(tool) = find_tool(request, "search_context") else {
        return DemoAction::Say("I have nothing to search in. `configureAgent {\"sessionSearch\": true}` lets me search conversations; a block of kind `searchable` lets me search its entries.".to_owned());
    };
    DemoAction::Call {
        name: tool.name.clone(),
        arguments: json::text(&json!({"label": choose_label(tool, "knowledge"), "query": query})),
    }
}

/// `<key>`, or `<label> <key>` where there is such a label.
fn load(request: &ModelRequest<'_>, name: &str, words: &str) -> DemoAction {
    if words.is_empty() {
        return DemoAction::Say("Load what? Say `load skill <key>`.".to_owned());
    }
    let Some(tool) = find_tool(request, name) else {
        return DemoAction::Say(
            "I have nothing to load from. `defineBlock {\"label\": \"skills\", \
                                \"kind\": \"loadable\"}` defines a block for documents, and \
                                `putSkill` adds them."
                .to_owned(),
        );
    };
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let is_label = !rest.is_empty() && labels(tool).iter().any(|label| label == first);
    let (label, key) = if is_label {
        (first.to_owned(), rest.trim())
    } else {
        (choose_label(tool, "skills"), words)
    };
    DemoAction::Call {
        name: tool.name.clone(),
        arguments: json::text(&json!({"label": label, "key": key})),
    }
}

fn call(request: &ModelRequest<'_>, name: &str, arguments: &str) -> DemoAction {
    if find_tool(request, name).is_none() {
        return DemoAction::Say(format!(
            "There is no tool `{}`. {}",
            quote(name),
            list_tools(request)
        ));
    }
    let parsed = json::decode_tree(arguments);
    if !parsed.is_ok_and(|parsed| parsed.is_object()) {
        return DemoAction::Say(format!(
            "The arguments of `{name}` must be a JSON object, for example `call {name} {{\"key\": \
             \"value\"}}`."
        ));
    }
    DemoAction::Call {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn echo(request: &ModelRequest<'_>, last: &ContextMessage) -> String {
    let files = match last.files.len() {
        0 => String::new(),
        1 => " and showed me a file".to_owned(),
        count => format!(" and showed me {count} files"),
    };
    let messages = match request.messages.len() {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    format!(
        "You said: “{}”{files}. I can see {messages} of this conversation. {} {RULES}",
        quote(last.content.trim()),
        list_tools(request)
    )
}

fn list_tools(request: &ModelRequest<'_>) -> String {
    let names: Vec<&str> = request
        .tools
        .iter()
        .take(MAX_LISTED_TOOLS)
        .map(|tool| tool.name.as_str())
        .collect();
    let more = request.tools.len() - names.len();
    match (names.is_empty(), more) {
        (true, _) => "I have no tools.".to_owned(),
        (false, 0) => format!("My tools: `{}`.", names.join("`, `")),
        (false, more) => format!("My tools: `{}` and {more} more.", names.join("`, `")),
    }
}

/// The first `limit` characters of a text, and `…` if there are more.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn quote(text: &str) -> String {
    cut(text, MAX_QUOTED_CHARS)
}

#[cfg(test)]
mod tests;
