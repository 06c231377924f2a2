//! Converts a stored assistant message into chunks, as if the model produced it now. A client that
//! resumes over HTTP begins an empty message at `start`. If the running turn continues a message,
//! that client needs these chunks first.

use serde::Deserialize;

use crate::stream::chunks::Chunk;
use base::json::{self, RawValue};
use base::part::{Part, PartKind, ToolPart, ToolState};

#[derive(Deserialize)]
struct RecountedMessage<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

/// The chunks between `start` and the turn's own first step, and the ids of their calls. Parts of
/// other kinds are omitted: the history has them.
pub fn recount(message_json: &str) -> (Vec<Chunk>, Vec<String>) {
    let message: RecountedMessage<'_> =
        json::decode(message_json).unwrap_or(RecountedMessage { parts: Vec::new() });
    let mut chunks = vec![Chunk::StartStep];
    let mut calls = Vec::new();
    for (index, part) in message.parts.into_iter().enumerate() {
        if let Some(part) = Part::parse(part) {
            // The turn's own block ids never have this prefix.
            add(&part, format!("e{index}"), &mut chunks, &mut calls);
        }
    }
    chunks.push(Chunk::FinishStep);
    (chunks, calls)
}

fn add(part: &Part<'_>, id: String, chunks: &mut Vec<Chunk>, calls: &mut Vec<String>) {
    match part.kind() {
        PartKind::StepStart if chunks.len() > 1 => {
            chunks.extend([Chunk::FinishStep, Chunk::StartStep]);
        }
        PartKind::Text => {
            if let Some(delta) = part.text() {
                chunks.extend([
                    Chunk::TextStart { id: id.clone() },
                    Chunk::TextDelta {
                        id: id.clone(),
                        delta,
                    },
                    Chunk::TextEnd { id },
                ]);
            }
        }
        PartKind::Reasoning => {
            if let Some(delta) = part.text() {
                chunks.extend([
                    Chunk::ReasoningStart { id: id.clone() },
                    Chunk::ReasoningDelta {
                        id: id.clone(),
                        delta,
                    },
                    Chunk::ReasoningEnd { id },
                ]);
            }
        }
        PartKind::File => {
            if let Some((url, media_type)) = part.file() {
                chunks.push(Chunk::File { url, media_type });
            }
        }
        PartKind::Tool(_) | PartKind::DynamicTool => {
            if let Some(part) = part.tool() {
                add_call(part, chunks, calls);
            }
        }
        PartKind::StepStart | PartKind::Other => {}
    }
}

fn add_call(part: ToolPart<'_>, chunks: &mut Vec<Chunk>, calls: &mut Vec<String>) {
    let Some(tool_name) = part.name else {
        return;
    };
    let tool_call_id = part.call_id;
    calls.push(tool_call_id.clone());
    chunks.push(Chunk::ToolInputAvailable {
        tool_call_id: tool_call_id.clone(),
        tool_name,
        input: part.input.map(RawValue::to_owned).unwrap_or_default(),
    });
    let approval_id = part.approval.and_then(|approval| approval.id);
    chunks.extend(match part.state {
        Some(ToolState::OutputAvailable) => Some(Chunk::ToolOutputAvailable {
            tool_call_id,
            output: part.output.map(RawValue::to_owned).unwrap_or_default(),
        }),
        Some(ToolState::OutputError) => Some(Chunk::ToolOutputError {
            tool_call_id,
            error_text: part.error_text.unwrap_or_default(),
        }),
        Some(ToolState::OutputDenied) => Some(Chunk::ToolOutputDenied { tool_call_id }),
        // The call may be answered or not: the running turn has the outcome.
        Some(ToolState::ApprovalRequested | ToolState::ApprovalResponded) => {
            approval_id.map(|approval_id| Chunk::ToolApprovalRequest {
                approval_id,
                tool_call_id,
            })
        }
        Some(ToolState::InputStreaming | ToolState::InputAvailable) | None => None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks_of(message: &str) -> Vec<String> {
        recount(message).0.iter().map(Chunk::json).collect()
    }

    #[test]
    fn a_message_is_replayed_part_by_part_in_steps() {
        let message = r#"{"id":"a1","role":"assistant","parts":[
            {"type":"reasoning","text":"hm"},{"type":"text","text":"See:"},
            {"type":"tool-place","toolCallId":"c1","state":"output-available","input":{"a":1.0},"output":"here"},
            {"type":"dynamic-tool","toolName":"x","toolCallId":"c2","state":"output-error","input":{},"errorText":"no"},
            {"type":"step-start"},
            {"type":"tool-pay","toolCallId":"c3","state":"approval-responded","input":{},"approval":{"id":"ap","approved":true}},
            {"type":"tool-pay","toolCallId":"c4","state":"output-denied","input":{}},
            {"type":"file","url":"https://example.com/a.png","mediaType":"image/png"},
            {"type":"source-url","url":"https://example.com"}
        ]}"#;
        assert_eq!(
            chunks_of(message),
            [
                r#"{"type":"start-step"}"#,
                r#"{"type":"reasoning-start","id":"e0"}"#,
                r#"{"type":"reasoning-delta","id":"e0","delta":"hm"}"#,
                r#"{"type":"reasoning-end","id":"e0"}"#,
                r#"{"type":"text-start","id":"e1"}"#,
                r#"{"type":"text-delta","id":"e1","delta":"See:"}"#,
                r#"{"type":"text-end","id":"e1"}"#,
                r#"{"type":"tool-input-available","toolCallId":"c1","toolName":"place","input":{"a":1.0}}"#,
                r#"{"type":"tool-output-available","toolCallId":"c1","output":"here"}"#,
                r#"{"type":"tool-input-available","toolCallId":"c2","toolName":"x","input":{}}"#,
                r#"{"type":"tool-output-error","toolCallId":"c2","errorText":"no"}"#,
                r#"{"type":"finish-step"}"#,
                r#"{"type":"start-step"}"#,
                r#"{"type":"tool-input-available","toolCallId":"c3","toolName":"pay","input":{}}"#,
                r#"{"type":"tool-approval-request","approvalId":"ap","toolCallId":"c3"}"#,
                r#"{"type":"tool-input-available","toolCallId":"c4","toolName":"pay","input":{}}"#,
                r#"{"type":"tool-output-denied","toolCallId":"c4"}"#,
                r#"{"type":"file","url":"https://example.com/a.png","mediaType":"image/png"}"#,
                r#"{"type":"finish-step"}"#,
            ]
        );
        assert_eq!(recount(message).1, ["c1", "c2", "c3", "c4"]);
    }

    #[test]
    fn unreadable_parts_are_skipped() {
        for message in [r#"{"parts":[]}"#, "{}", r#"{"parts":[5,{"type":7}]}"#] {
            assert_eq!(
                chunks_of(message),
                [r#"{"type":"start-step"}"#, r#"{"type":"finish-step"}"#]
            );
        }
    }
}
