//! Keeps tool calls and their results together: a provider rejects a call without its result, and a
//! result without its call. Pure.
//!
//! The same id may name many calls of a conversation: some models start to count again in each
//! turn. So a result belongs to a call by its position: to the newest call above it that has its id
//! and no result yet. Of calls with one id in one message, the first is answered first.

use std::collections::HashMap;

use base::action::Role;
use conversation::log::tool::ToolCall;
use models::message::ContextMessage;

/// Replaces a result that was never written because the turn was interrupted between the call and
/// its result.
const CUT_OFF: &str = "The tool did not answer: the turn stopped before its result was recorded.";

/// A message and the `seq` of the event that it comes from.
pub struct NumberedMessage {
    pub seq: i64,
    pub message: ContextMessage,
}

/// A message that is not a result, and the results of its calls in the order they came.
struct AnsweredMessage {
    message: NumberedMessage,
    results: Vec<NumberedMessage>,
    /// The positions of its calls that have no result.
    open: Vec<usize>,
}

/// Moves each result to its call's message, drops results without a call, and adds a
/// result for every call that has none.
pub fn close_pairs(messages: Vec<NumberedMessage>) -> Vec<NumberedMessage> {
    let mut answered: Vec<AnsweredMessage> = Vec::with_capacity(messages.len());
    // The positions of open calls, by the calls' id: an entry for each call, the newest last.
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    let count = messages.len();
    for numbered in messages {
        if numbered.message.role == Role::Tool {
            let id = numbered.message.tool_call_id.as_ref();
            let index = id.and_then(|id| open.get_mut(id.as_str())?.pop());
            let is_last = index.is_some_and(|index| index + 1 == answered.len());
            if let Some(message) = index.and_then(|index| answered.get_mut(index)) {
                message.add_result(numbered, is_last);
            }
            continue;
        }
        for call in numbered.message.calls() {
            let indexes = open.entry(call.id.as_str().to_owned()).or_default();
            indexes.push(answered.len());
        }
        answered.push(AnsweredMessage {
            open: (0..numbered.message.calls().len()).collect(),
            results: Vec::new(),
            message: numbered,
        });
    }
    let mut closed = Vec::with_capacity(count);
    for message in answered {
        message.write(&mut closed);
    }
    closed
}

impl AnsweredMessage {
    /// Adds the result of the first open call that has its id. A late result gets the position of
    /// its call.
    fn add_result(&mut self, mut result: NumberedMessage, follows_its_call: bool) {
        let id = result.message.tool_call_id.as_ref();
        let calls = self.message.message.calls();
        let position = self.open.iter().position(|call| {
            let call = calls.get(*call);
            call.is_some_and(|call| Some(&call.id) == id)
        });
        if let Some(position) = position {
            self.open.remove(position);
        }
        if !follows_its_call {
            result.seq = self.message.seq;
        }
        self.results.push(result);
    }

    fn write(self, closed: &mut Vec<NumberedMessage>) {
        let calls = self.message.message.calls();
        let missing = self.open.iter().filter_map(|call| calls.get(*call));
        let missing: Vec<NumberedMessage> = missing
            .map(|call| missing_result(self.message.seq, call))
            .collect();
        closed.push(self.message);
        closed.extend(self.results);
        closed.extend(missing);
    }
}

fn missing_result(seq: i64, call: &ToolCall) -> NumberedMessage {
    NumberedMessage {
        seq,
        message: ContextMessage {
            tool_call_id: Some(call.id.clone()),
            tool_name: Some(call.name.clone()),
            is_error: Some(true),
            ..ContextMessage::of_text(Role::Tool, CUT_OFF.to_owned())
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u`, `a`, `s`: texts; `c12`: calls 1 and 2; `r1`: the result of 1.
    fn close(script: &str) -> String {
        let numbered = script.split_whitespace().enumerate().map(|(seq, token)| {
            let (kind, ids) = token.split_at(1);
            let json = match kind {
                "u" => r#"{"role":"user","content":"u"}"#.to_owned(),
                "a" => r#"{"role":"assistant","content":"a"}"#.to_owned(),
                "c" => {
                    let calls: Vec<String> = ids
                        .chars()
                        .map(|id| format!(r#"{{"id":"{id}","name":"t","arguments":{{}}}}"#))
                        .collect();
                    format!(
                        r#"{{"role":"assistant","toolCalls":[{}]}}"#,
                        calls.join(",")
                    )
                }
                _ => format!(
                    r#"{{"role":"tool","content":"r","toolCallId":"{ids}","toolName":"t"}}"#
                ),
            };
            NumberedMessage {
                seq: seq as i64,
                message: serde_json::from_str(&json).unwrap(),
            }
        });
        let shown = close_pairs(numbered.collect()).into_iter().map(|numbered| {
            let message = numbered.message;
            let ids: String = message
                .calls()
                .iter()
                .map(|call| call.id.as_str())
                .collect();
            match message.role {
                Role::User => "u".to_owned(),
                Role::Assistant if ids.is_empty() => "a".to_owned(),
                Role::Assistant => format!("c{ids}"),
                _ if message.is_error == Some(true) => {
                    format!("x{}", message.tool_call_id.unwrap())
                }
                _ => format!("r{}", message.tool_call_id.unwrap()),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn calls_and_results_are_never_separated() {
        for (script, expected) in [
            ("u a u", "u a u"),
            ("u c1 r1 a", "u c1 r1 a"),
            ("r1 a u", "a u"),
            ("u c1", "u c1 x1"),
            ("u c12 r2 u", "u c12 r2 x1 u"),
            ("u c12 r2 r1 a", "u c12 r2 r1 a"),
            ("c1 u r1 a", "c1 r1 u a"),
            ("c1 r1 r1 a", "c1 r1 a"),
            ("c1 c2 r1 r2", "c1 r1 c2 r2"),
            ("", ""),
            // One id repeated many times.
            ("u c1 r1 a u c1 r1 a u c1 r1", "u c1 r1 a u c1 r1 a u c1 r1"),
            ("c1 r1 c1 u", "c1 r1 c1 x1 u"),
            ("c1 u c1 r1", "c1 x1 u c1 r1"),
            ("c1 u c1 r1 r1", "c1 r1 u c1 r1"),
            ("c11 r1 r1", "c11 r1 r1"),
            ("c11 r1 a", "c11 r1 x1 a"),
            ("c121 r1 r2 r1 r1", "c121 r1 r2 r1"),
        ] {
            assert_eq!(close(script), expected, "{script}");
        }
    }
}
