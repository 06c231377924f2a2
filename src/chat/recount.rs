//! Turns a stored assistant message into chunks, as if the model were saying it now. A
//! client that resumes over HTTP begins an empty message at `start`. If the running
//! turn continues a message, that client needs these chunks first.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::chunks::Chunk;

#[derive(Deserialize)]
struct RecountedMessage<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecountedPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    state: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    error_text: Option<String>,
    approval: Option<RecountedApproval>,
    url: Option<String>,
    media_type: Option<String>,
}

#[derive(Deserialize)]
struct RecountedApproval {
    id: String,
}

/// The chunks between `start` and the turn's own first step, and the ids of their
/// calls. Parts of other kinds are left out: the history has them.
pub fn recount(message_json: &str) -> (Vec<Chunk>, Vec<String>) {
    let message: RecountedMessage<'_> =
        serde_json::from_str(message_json).unwrap_or(RecountedMessage { parts: Vec::new() });
    let mut chunks = vec![Chunk::StartStep];
    let mut calls = Vec::new();
    for (index, part) in message.parts.into_iter().enumerate() {
        if let Ok(part) = serde_json::from_str::<RecountedPart<'_>>(part.get()) {
            // The turn's own block ids never have this prefix.
            add(part, format!("e{index}"), &mut chunks, &mut calls);
        }
    }
    chunks.push(Chunk::FinishStep);
    (chunks, calls)
}

fn add(part: RecountedPart<'_>, id: String, chunks: &mut Vec<Chunk>, calls: &mut Vec<String>) {
    match (part.kind.as_str(), part.text) {
        ("step-start", _) if chunks.len() > 1 => {
            chunks.extend([Chunk::FinishStep, Chunk::StartStep]);
        }
        ("text", Some(delta)) => chunks.extend([
            Chunk::TextStart { id: id.clone() },
            Chunk::TextDelta {
                id: id.clone(),
                delta,
            },
            Chunk::TextEnd { id },
        ]),
        ("reasoning", Some(delta)) => chunks.extend([
            Chunk::ReasoningStart { id: id.clone() },
            Chunk::ReasoningDelta {
                id: id.clone(),
                delta,
            },
            Chunk::ReasoningEnd { id },
        ]),
        ("file", _) => {
            if let (Some(url), Some(media_type)) = (part.url, part.media_type) {
                chunks.push(Chunk::File { url, media_type });
            }
        }
        (kind, _) => {
            let name = match kind {
                "dynamic-tool" => part.tool_name.as_deref(),
                kind => kind.strip_prefix("tool-"),
            };
            let (Some(name), Some(call)) = (name, part.tool_call_id) else {
                return;
            };
            calls.push(call.clone());
            chunks.push(Chunk::ToolInputAvailable {
                tool_call_id: call.clone(),
                tool_name: name.to_owned(),
                input: part.input.unwrap_or(RawValue::NULL).to_owned(),
            });
            chunks.extend(match (part.state.as_deref(), part.approval) {
                (Some("output-available"), _) => Some(Chunk::ToolOutputAvailable {
                    tool_call_id: call,
                    output: part.output.unwrap_or(RawValue::NULL).to_owned(),
                }),
                (Some("output-error"), _) => Some(Chunk::ToolOutputError {
                    tool_call_id: call,
                    error_text: part.error_text.unwrap_or_default(),
                }),
                (Some("output-denied"), _) => Some(Chunk::ToolOutputDenied { tool_call_id: call }),
                // Whether answered or not: the running turn has the outcome.
                (Some("approval-requested" | "approval-responded"), Some(approval)) => {
                    Some(Chunk::ToolApprovalRequest {
                        approval_id: approval.id,
                        tool_call_id: call,
                    })
                }
                _ => None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str) -> Vec<String> {
        recount(message).0.iter().map(Chunk::json).collect()
    }

    #[test]
    fn a_message_is_told_part_by_part_in_steps() {
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
            told(message),
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
    fn what_can_not_be_read_is_left_out() {
        for message in [r#"{"parts":[]}"#, "{}", r#"{"parts":[5,{"type":7}]}"#] {
            assert_eq!(
                told(message),
                [r#"{"type":"start-step"}"#, r#"{"type":"finish-step"}"#]
            );
        }
    }
}
