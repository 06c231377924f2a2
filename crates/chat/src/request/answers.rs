//! A client's answers to calls that were left to it: the output of a client tool, or the
//! approval of a call. An answer arrives in a part of the assistant message (HTTP) or in a
//! frame of its own (a socket); this module parses both into [`CallAnswer`].
//!
//! This module does not check whether the call still needs the answer: see
//! [`crate::request::plan`].

use serde::{Deserialize, Serialize};

use base::ids::Id;
use base::json::{self, RawValue, list};
use base::part::{Part, ToolState};
use conversation::log::message_text::MAX_PARTS;
use conversation::log::note::ProviderData;

/// The text that a model reads if the user declined a call without a reason.
pub const DECLINED: &str = "The user declined this call.";

/// The text that a model reads if a client reported an error without a text.
const FAILED: &str = "The client reported that the tool failed.";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientAnswer {
    pub tool_call_id: Id,
    pub outcome: ClientOutcome,
    /// The result as the caller wrote it in a provider's format.
    #[serde(rename = "kept", default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientOutcome {
    /// Any JSON value, as it was sent.
    Output(Box<RawValue>),
    Error(String),
}

impl ClientOutcome {
    /// An omitted output is `null`: JavaScript's `undefined` has no JSON.
    pub fn output(value: Option<&RawValue>) -> Self {
        Self::Output(value.map_or_else(null, RawValue::to_owned))
    }

    pub fn error(text: Option<String>) -> Self {
        Self::Error(
            text.filter(|text| !text.is_empty())
                .unwrap_or_else(|| FAILED.to_owned()),
        )
    }
}

fn null() -> Box<RawValue> {
    Box::default()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswer {
    pub tool_call_id: Id,
    /// The approval request that this answers. HTTP sends its id; a socket's frame doesn't.
    pub approval_id: Option<String>,
    pub approved: bool,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallAnswer {
    Tool(ClientAnswer),
    Approval(ApprovalAnswer),
}

impl CallAnswer {
    pub fn tool_call_id(&self) -> &str {
        match self {
            CallAnswer::Tool(answer) => answer.tool_call_id.as_str(),
            CallAnswer::Approval(answer) => answer.tool_call_id.as_str(),
        }
    }
}

/// The answers among a message's parts, in their order. Parts that are not valid answers
/// are skipped: most parts of a history contain none.
pub fn answers_in(parts: &RawValue) -> Vec<CallAnswer> {
    let mut json = json::Reader::new(parts.get());
    let parts = list::<_, &RawValue, 0, MAX_PARTS>(&mut json).unwrap_or_default();
    parts.into_iter().filter_map(answer_in).collect()
}

fn answer_in(part: &RawValue) -> Option<CallAnswer> {
    let part = Part::parse(part)?.tool()?;
    let tool_call_id = Id::parse(part.call_id).ok()?;
    let outcome = match part.state? {
        ToolState::OutputAvailable if !part.is_preliminary => ClientOutcome::output(part.output),
        ToolState::OutputError => ClientOutcome::error(part.error_text),
        state @ (ToolState::ApprovalResponded | ToolState::OutputDenied) => {
            let approval = part.approval.unwrap_or_default();
            let is_denied = state == ToolState::OutputDenied;
            return Some(CallAnswer::Approval(ApprovalAnswer {
                tool_call_id,
                approval_id: approval.id,
                approved: approval.approved == Some(true) && !is_denied,
                reason: approval.reason,
            }));
        }
        _ => return None,
    };
    Some(CallAnswer::Tool(ClientAnswer {
        tool_call_id,
        outcome,
        provider_data: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(parts: &str) -> Vec<String> {
        let parts = json::raw(parts.to_owned()).unwrap();
        let describe = |answer: CallAnswer| match answer {
            CallAnswer::Tool(ClientAnswer {
                tool_call_id,
                outcome,
                ..
            }) => match outcome {
                ClientOutcome::Output(value) => format!("{tool_call_id} output {}", value.get()),
                ClientOutcome::Error(text) => format!("{tool_call_id} error {text}"),
            },
            CallAnswer::Approval(answer) => format!(
                "{} {:?} {} {:?}",
                answer.tool_call_id, answer.approval_id, answer.approved, answer.reason
            ),
        };
        answers_in(&parts).into_iter().map(describe).collect()
    }

    #[test]
    fn outputs_and_errors_of_tools_are_answers() {
        assert_eq!(
            answers(
                r#"[{"type":"step-start"},{"type":"text","text":"a"},
                {"type":"tool-place","toolCallId":"c1","state":"output-available","input":{},"output":{"n":1.0}},
                {"type":"dynamic-tool","toolName":"x","toolCallId":"c2","state":"output-error","errorText":"no GPS"},
                {"type":"tool-place","toolCallId":"c3","state":"output-available"},
                {"type":"tool-place","toolCallId":"c4","state":"output-error"}]"#
            ),
            [
                r#"c1 output {"n":1.0}"#.to_owned(),
                "c2 error no GPS".to_owned(),
                "c3 output null".to_owned(),
                format!("c4 error {FAILED}"),
            ]
        );
    }

    #[test]
    fn an_approval_needs_an_explicit_true() {
        assert_eq!(
            answers(
                r#"[{"type":"tool-t","toolCallId":"c1","state":"approval-responded","approval":{"id":"a","approved":true}},
                {"type":"tool-t","toolCallId":"c2","state":"approval-responded","approval":{"id":"b","approved":false,"reason":"never"}},
                {"type":"tool-t","toolCallId":"c3","state":"approval-responded"},
                {"type":"tool-t","toolCallId":"c4","state":"output-denied","approval":{"id":"d","approved":true}}]"#
            ),
            [
                r#"c1 Some("a") true None"#,
                r#"c2 Some("b") false Some("never")"#,
                "c3 None false None",
                r#"c4 Some("d") false None"#,
            ]
        );
    }

    #[test]
    fn unsettled_and_other_parts_are_not_answers() {
        assert!(
            answers(
                r#"[{"type":"tool-t","toolCallId":"c","state":"input-available","input":{}},
                {"type":"tool-t","toolCallId":"c","state":"approval-requested","approval":{"id":"a"}},
                {"type":"tool-t","toolCallId":"c","state":"output-available","output":1,"preliminary":true},
                {"type":"text","toolCallId":"c","state":"output-available","output":1},
                {"type":"tool-t","toolCallId":5,"state":"output-available","output":1},
                {"type":"tool-t","toolCallId":"","state":"output-available","output":1},
                null, 7, "x"]"#
            )
            .is_empty()
        );
        assert!(answers(r#"{"type":"tool-t"}"#).is_empty());
    }
}
