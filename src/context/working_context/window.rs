//! Keeps tool calls and their results together: a provider refuses a call without its
//! result, and a result without its call. Pure.

use std::collections::HashSet;

use crate::base::action::Role;
use crate::models::message::ContextMessage;

/// Replaces a result that was never written because the turn was cut off between the
/// call and its result.
const CUT_OFF: &str =
    "The tool did not answer: the turn was cut off before its result was recorded.";

/// A message and the `seq` of the event that it comes from.
pub struct PlacedMessage {
    pub seq: i64,
    pub message: ContextMessage,
}

/// Drops results whose call isn't in the window or was answered already. Adds a result
/// for every open call, right after the call's message.
pub fn close_pairs(messages: Vec<PlacedMessage>) -> Vec<PlacedMessage> {
    let mut closed: Vec<PlacedMessage> = Vec::with_capacity(messages.len());
    // Calls without a result, of the last message that made calls.
    let mut open: Vec<(String, PlacedMessage)> = Vec::new();
    let mut called: HashSet<String> = HashSet::new();
    for placed in messages {
        if placed.message.role == Role::Tool {
            let id = placed
                .message
                .tool_call_id
                .as_ref()
                .map(|id| id.as_str().to_owned());
            let answered = id.and_then(|id| open.iter().position(|(open, _)| *open == id));
            if let Some(index) = answered {
                open.remove(index);
                closed.push(placed);
            }
            continue;
        }
        closed.extend(open.drain(..).map(|(_, stand_in)| stand_in));
        for call in placed.message.calls() {
            if called.insert(call.id.as_str().to_owned()) {
                open.push((call.id.as_str().to_owned(), stand_in(placed.seq, call)));
            }
        }
        closed.push(placed);
    }
    closed.extend(open.into_iter().map(|(_, stand_in)| stand_in));
    closed
}

fn stand_in(seq: i64, call: &crate::log::tool::ToolCall) -> PlacedMessage {
    PlacedMessage {
        seq,
        message: ContextMessage {
            tool_call_id: Some(call.id.clone()),
            tool_name: Some(call.name.clone()),
            is_error: Some(true),
            ..ContextMessage::plain(Role::Tool, CUT_OFF.to_owned())
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u`, `a`, `s`: said; `c12`: calls 1 and 2; `r1`: the result of 1.
    fn close(script: &str) -> String {
        let placed = script.split_whitespace().enumerate().map(|(seq, token)| {
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
            PlacedMessage {
                seq: seq as i64,
                message: serde_json::from_str(&json).unwrap(),
            }
        });
        let shown = close_pairs(placed.collect()).into_iter().map(|placed| {
            let message = placed.message;
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
    fn no_pair_is_ever_halved() {
        for (script, expected) in [
            ("u a u", "u a u"),
            ("u c1 r1 a", "u c1 r1 a"),
            ("r1 a u", "a u"),
            ("u c1", "u c1 x1"),
            ("u c12 r2 u", "u c12 r2 x1 u"),
            ("u c12 r2 r1 a", "u c12 r2 r1 a"),
            ("c1 u r1 a", "c1 x1 u a"),
            ("c1 r1 r1 a", "c1 r1 a"),
            ("c1 c2 r1 r2", "c1 x1 c2 r2"),
            ("", ""),
        ] {
            assert_eq!(close(script), expected, "{script}");
        }
    }
}
