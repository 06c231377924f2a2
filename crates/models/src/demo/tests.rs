use serde_json::{Value, json};

use super::*;
use crate::FinishReason;

/// A conversation with the demo, and the demo's tools.
#[derive(Default)]
struct Talk {
    system: Vec<String>,
    messages: Vec<ContextMessage>,
    tools: Vec<ToolDefinition>,
}

impl Talk {
    fn with_tools(names: &[&str]) -> Self {
        let tool = |name: &&str| {
            let labels = json!({"label": {"type": "string", "enum": ["notes", "memory"]}});
            let tool = json!({"name": name, "description": "", "parameters": {"type": "object", "properties": labels}});
            serde_json::from_value(tool).unwrap()
        };
        Self {
            tools: names.iter().map(tool).collect(),
            ..Self::default()
        }
    }

    fn receive(&mut self, message: Value) {
        self.messages.push(serde_json::from_value(message).unwrap());
    }

    fn answer(&self) -> Vec<AnswerPart> {
        answer(&ModelRequest {
            system: &self.system,
            messages: &self.messages,
            tools: &self.tools,
            ..ModelRequest::default()
        })
    }

    /// Sends the text, and returns the text of the answer.
    fn send(&mut self, text: &str) -> String {
        self.receive(json!({"role": "user", "content": text}));
        let text = text_of(&self.answer());
        self.receive(json!({"role": "assistant", "content": text}));
        text
    }

    /// Sends the text; the called tool returns `result`. Returns the call and the text after it.
    fn send_with_tool_result(
        &mut self,
        text: &str,
        result: &str,
        is_error: bool,
    ) -> (Value, String) {
        self.receive(json!({"role": "user", "content": text}));
        let parts = self.answer();
        assert_eq!(
            parts.last(),
            Some(&AnswerPart::Finish(FinishReason::ToolCalls))
        );
        let call = parts.iter().find_map(|part| match part {
            AnswerPart::Call {
                id,
                name,
                arguments,
                ..
            } => Some((id, name, serde_json::from_str::<Value>(arguments).unwrap())),
            _ => None,
        });
        let (id, name, arguments) = call.unwrap();
        let call = json!({"id": id, "name": name, "arguments": arguments});
        self.receive(json!({"role": "assistant", "content": text_of(&parts), "toolCalls": [call]}));
        self.receive(json!({"role": "tool", "toolCallId": id, "toolName": name, "content": result, "isError": is_error}));
        let parts = self.answer();
        assert_eq!(parts.last(), Some(&AnswerPart::Finish(FinishReason::Stop)));
        let text = text_of(&parts);
        self.receive(json!({"role": "assistant", "content": text}));
        (call, text)
    }
}

fn text_of(parts: &[AnswerPart]) -> String {
    let text = |part: &AnswerPart| match part {
        AnswerPart::Text(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

#[test]
fn introduces_itself_once_then_repeats_the_message() {
    let mut talk = Talk::default();
    let first = talk.send("Hello");
    assert!(first.starts_with(INTRODUCTION), "{first}");
    assert!(first.contains("“Hello”") && first.contains("1 message"));
    let second = talk.send("Hello again");
    assert!(!second.contains("demo model"), "{second}");
    assert!(second.contains("3 messages"));
}

#[test]
fn streams_word_by_word_and_counts_its_tokens() {
    let mut talk = Talk::default();
    talk.receive(json!({"role": "user", "content": "Hello"}));
    let parts = talk.answer();
    assert!(parts.len() > 30);
    assert_eq!(parts, talk.answer());
    let Some(AnswerPart::Usage(usage)) = parts.get(parts.len() - 2) else {
        panic!("no usage");
    };
    assert_eq!(usage.output_tokens, tokens::estimate(&text_of(&parts)));
    assert_eq!(usage.input_tokens, tokens::estimate("Hello"));
}

#[test]
fn writes_to_the_memory_block_and_confirms() {
    let mut talk = Talk::with_tools(&["set_context"]);
    let (call, text) = talk.send_with_tool_result("Remember that I like tea.", "ok", false);
    assert_eq!(
        call,
        json!({"id": "call_0", "name": "set_context",
            "arguments": {"label": "memory", "content": "I like tea.", "action": "append"}})
    );
    assert!(text.contains("`memory`: I like tea."), "{text}");
    assert!(text.starts_with(INTRODUCTION));
    // The next call has its own id.
    let (call, text) = talk.send_with_tool_result("remember milk", "Block `memory` is full.", true);
    assert_eq!(call["id"], "call_1");
    assert_eq!(text, "`set_context` failed: Block `memory` is full.");
}

#[test]
fn without_the_tool_explains_what_to_define() {
    let mut talk = Talk::default();
    talk.send("hi");
    for (text, hint) in [
        ("remember tea", "defineBlock"),
        ("search tea", "sessionSearch"),
        ("load tea", "putSkill"),
        ("call tea", "I have no tools."),
        ("what do you remember", "defineBlock"),
        ("remember", "Remember what?"),
        ("search", "Search for what?"),
    ] {
        let answer = talk.send(text);
        assert!(answer.contains(hint), "{answer}");
    }
}

#[test]
fn searches_conversations_before_entries() {
    let mut talk = Talk::with_tools(&["search_context", "session_search"]);
    let (call, text) = talk.send_with_tool_result("search for tea", "1. tea", false);
    assert_eq!(call["name"], "session_search");
    assert_eq!(call["arguments"], json!({"query": "tea"}));
    assert!(text.ends_with("About “tea” I found:\n1. tea"), "{text}");
    let mut talk = Talk::with_tools(&["search_context"]);
    let (call, text) = talk.send_with_tool_result("search tea", "", false);
    assert_eq!(call["arguments"], json!({"label": "notes", "query": "tea"}));
    assert!(text.ends_with("I found nothing about “tea”."));
}

#[test]
fn loads_a_document_by_key_and_by_label() {
    let mut talk = Talk::with_tools(&["load_context"]);
    let (call, text) =
        talk.send_with_tool_result("load skill code-review", "Read it twice.", false);
    assert_eq!(
        call["arguments"],
        json!({"label": "notes", "key": "code-review"})
    );
    assert!(text.ends_with("It contains:\nRead it twice."));
    let (call, _) = talk.send_with_tool_result("load memory code-review", "", false);
    assert_eq!(
        call["arguments"],
        json!({"label": "memory", "key": "code-review"})
    );
}

#[test]
fn calls_any_tool_by_name() {
    let mut talk = Talk::with_tools(&["getWeather"]);
    let (call, text) = talk.send_with_tool_result(
        "call getWeather {\"city\": \"Lisbon\"}",
        "{\"sunny\":true}",
        false,
    );
    assert_eq!(call["arguments"], json!({"city": "Lisbon"}));
    assert!(text.ends_with("`getWeather` returned: {\"sunny\":true}"));
    assert!(
        talk.send("call getWeather {city}")
            .contains("must be a JSON object")
    );
    assert!(
        talk.send("call getTime")
            .contains("There is no tool `getTime`. My tools: `getWeather`.")
    );
}

#[test]
fn answers_from_the_prompt_and_the_conversation() {
    let rule = "═".repeat(46);
    let mut talk = Talk {
        system: vec![
            "Be brief.".to_owned(),
            format!(
                "{rule}\nSOUL [readonly]\n{rule}\nA librarian.\n\n{rule}\nMEMORY [writable]\n{rule}\nLikes tea.\nHas a cat."
            ),
            "<context_block label=\"todo\" readonly=\"true\">\nBuy milk.\n</context_block>"
                .to_owned(),
        ],
        ..Talk::default()
    };
    talk.send("My name is Ana. I live in Lisbon.");
    assert_eq!(
        talk.send("What do you remember?"),
        "In memory:\n- SOUL [readonly]: A librarian.\n- MEMORY [writable]: Likes tea.\nHas a cat.\n- todo: Buy milk.\n\nYou told me:\n- My name is Ana."
    );
}

#[test]
fn a_summary_of_no_messages_states_so() {
    assert_eq!(Talk::default().send(SUMMARY_REQUEST), "Nothing was said.");
    // context/compaction/summary.rs tests that the demo keeps to this number.
    assert_eq!(recall::MAX_SUMMARY_CHARS, 2_000);
}

#[test]
fn makes_no_call_after_a_result() {
    let mut talk = Talk::with_tools(&["set_context"]);
    for _ in 0..3 {
        talk.send_with_tool_result("remember tea", "remember tea", false);
    }
    talk.receive(json!({"role": "system", "content": "Be kind."}));
    assert_eq!(text_of(&talk.answer()), "There is nothing new to answer.");
    assert_eq!(text_of(&Talk::default().answer()), INTRODUCTION);
}

#[test]
fn repetitions_are_bounded() {
    let long = "é".repeat(100_000);
    let mut talk = Talk::with_tools(&["t"]);
    assert!(talk.send(&long).chars().count() < 1_500);
    let (_, text) = talk.send_with_tool_result("call t", &long, false);
    assert!(text.chars().count() < 2_500);
}
