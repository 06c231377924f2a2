//! The parts of a conversation that the demo model repeats: the text in memory, the
//! messages, and a summary built from the conversation's own sentences.

use super::cut;
use crate::ModelRequest;
use crate::message::ContextMessage;
use base::action::Role;

/// The character of the rules around a section's header in a prompt of format `text`.
const RULE: char = '═';

/// The most characters of a section, and of a sentence, that are repeated.
const MAX_SECTION_CHARS: usize = 400;
const MAX_SENTENCE_CHARS: usize = 160;

/// How many of the user's newest messages are repeated.
const MAX_REPEATED: usize = 5;

/// The most characters of a summary.
pub const MAX_SUMMARY_CHARS: usize = 2_000;

pub fn recall(request: &ModelRequest<'_>) -> String {
    let mut lines = Vec::new();
    let prompts = request.system.iter().map(String::as_str);
    for (header, content) in prompts.chain(request.reminder).flat_map(sections) {
        let content = match content.as_str() {
            "" => "(empty)",
            content => content,
        };
        lines.push(format!("- {header}: {}", cut(content, MAX_SECTION_CHARS)));
    }
    let memory = if lines.is_empty() {
        "I have no memory blocks. Define one with `defineBlock`.".to_owned()
    } else {
        format!("In memory:\n{}", lines.join("\n"))
    };
    let is_users = |message: &&ContextMessage| message.role == Role::User;
    let mut statements: Vec<String> = request
        .messages
        .iter()
        .rev()
        .filter(is_users)
        // The newest message is the question itself.
        .skip(1)
        .take(MAX_REPEATED)
        .map(|message| format!("- {}", first_sentence(&message.content)))
        .collect();
    statements.reverse();
    if statements.is_empty() {
        format!("{memory}\n\nYou have told me nothing else yet.")
    } else {
        format!("{memory}\n\nYou told me:\n{}", statements.join("\n"))
    }
}

/// The header and content of each section of a prompt, in either format.
fn sections(prompt: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    let is_rule = |line: &&str| !line.is_empty() && line.chars().all(|c| c == RULE);
    let mut lines = prompt.lines().peekable();
    while let Some(line) = lines.next() {
        if is_rule(&line) {
            let header = lines.next().unwrap_or_default();
            lines.next_if(is_rule);
            sections.push((header.to_owned(), Vec::new()));
        } else if let Some(label) = xml_label(line) {
            sections.push((label.to_owned(), Vec::new()));
        } else if line.starts_with("</context_block") {
            continue;
        } else if let Some((_, content)) = sections.last_mut() {
            content.push(line);
        }
    }
    sections
        .into_iter()
        .map(|(header, content)| (header, content.join("\n").trim().to_owned()))
        .collect()
}

/// `<context_block label="memory" …>`
fn xml_label(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("<context_block label=\"")?;
    rest.split('"').next()
}

/// Builds a summary from the text between a request's tags: the earlier summary, and the
/// conversation with one line per message.
pub fn summarize(request: &str) -> String {
    let material = ["summary", "conversation"].map(|tag| between(request, tag));
    let sentences: Vec<String> = material
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.trim().is_empty())
        .map(|line| format!("- {}", first_sentence(line)))
        .collect();
    if sentences.is_empty() {
        return "Nothing was said.".to_owned();
    }
    let length = |line: &String| line.chars().count() + 1;
    if sentences.iter().map(length).sum::<usize>() <= MAX_SUMMARY_CHARS {
        return sentences.join("\n");
    }
    // The first sentence, then as many of the last sentences as fit.
    let first = sentences.first().cloned().unwrap_or_default();
    let head = format!("{first}\n- …");
    let mut capacity = MAX_SUMMARY_CHARS - length(&head);
    let newest = sentences.iter().rev().take_while(|line| {
        let left = capacity.checked_sub(length(line));
        capacity = left.unwrap_or(0);
        left.is_some()
    });
    let shown_count = newest.count();
    let tail = sentences
        .get(sentences.len() - shown_count..)
        .unwrap_or_default();
    format!("{head}\n{}", tail.join("\n"))
}

/// The lines between a line that opens the tag and one that closes it.
pub fn between<'a>(request: &'a str, tag: &str) -> &'a str {
    let inside = request.split_once(&format!("\n<{tag}>\n"));
    let inside = inside.and_then(|(_, rest)| rest.split_once(&format!("\n</{tag}>")));
    inside.map_or("", |(text, _)| text)
}

fn first_sentence(text: &str) -> String {
    let line = text
        .trim()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("- ");
    let ends = [". ", "! ", "? "];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    let sentence = end.and_then(|end| line.get(..=end)).unwrap_or(line);
    cut(sentence, MAX_SENTENCE_CHARS)
}
