//! One part of a message of the AI SDK (`UIMessage`): the kinds of parts, the fields of a
//! tool's part, and the states of such a part. The names of kinds and states are defined
//! only in this file.
//!
//! A tool call and its result are one part, which goes through the [`ToolState`]s. First
//! the input arrives. Then the user approves the call if the tool requires approval. Then
//! the output arrives.
//!
//! This module does not depend on where a message is stored. Search reads parts as bytes
//! (`search/skim.rs`) and uses only the names from here.

use crate::json::{self, RawValue, ReadError};
use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

/// Names of a part's fields, for code that reads a field by its name. [`Part`] and
/// [`NewToolPart`] have the same names.
pub mod field {
    pub const KIND: &str = "type";
    /// The text of a text part or of reasoning.
    pub const TEXT: &str = "text";
    pub const CALL_ID: &str = "toolCallId";
    /// Only with `dynamic-tool`: other kinds include the name of their tool.
    pub const TOOL_NAME: &str = "toolName";
    pub const STATE: &str = "state";
    pub const INPUT: &str = "input";
    pub const OUTPUT: &str = "output";
    pub const ERROR_TEXT: &str = "errorText";
    /// Of a file part, like the next two.
    pub const MEDIA_TYPE: &str = "mediaType";
    pub const URL: &str = "url";
    pub const FILENAME: &str = "filename";
}

/// The kinds of parts without a call, for code that writes them.
pub mod kind {
    pub const TEXT: &str = "text";
    pub const REASONING: &str = "reasoning";
    pub const FILE: &str = "file";
    pub const DYNAMIC_TOOL: &str = "dynamic-tool";
    /// The questions of a tool, next to the part of its call.
    pub const INPUT_REQUEST: &str = "data-input-request";
}

/// Fields of a part that contain the provider's metadata.
pub const PROVIDER_FIELDS: &[&str] = &[
    "providerMetadata",
    "callProviderMetadata",
    "resultProviderMetadata",
];

/// The prefix of the kinds of tool parts; the name of the tool follows.
const TOOL_PREFIX: &str = "tool-";

/// The kind of a part that calls the tool with this name.
pub fn kind_of_tool(name: &str) -> String {
    format!("{TOOL_PREFIX}{name}")
}

/// The kind of a part, by its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind<'a> {
    Text,
    Reasoning,
    File,
    /// The start of another call of the model.
    StepStart,
    /// A call of the tool with this name.
    Tool(&'a str),
    /// A call of the tool in the part's `toolName`.
    DynamicTool,
    /// Kinds that this agent only stores and shows.
    Other,
}

impl<'a> PartKind<'a> {
    pub fn parse(name: &'a str) -> Self {
        match name {
            kind::TEXT => Self::Text,
            kind::REASONING => Self::Reasoning,
            kind::FILE => Self::File,
            "step-start" => Self::StepStart,
            kind::DYNAMIC_TOOL => Self::DynamicTool,
            _ => name
                .strip_prefix(TOOL_PREFIX)
                .map_or(Self::Other, Self::Tool),
        }
    }

    /// The tool that a part of this kind calls. `tool_name` is the part's `toolName`.
    pub fn find_tool(self, tool_name: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Tool(name) => Some(name),
            Self::DynamicTool => tool_name,
            Self::Text | Self::Reasoning | Self::File | Self::StepStart | Self::Other => None,
        }
    }
}

/// The progress of the call of a tool's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    InputStreaming,
    InputAvailable,
    ApprovalRequested,
    ApprovalResponded,
    OutputAvailable,
    OutputError,
    OutputDenied,
}

impl ToolState {
    const ALL: [Self; 7] = [
        Self::InputStreaming,
        Self::InputAvailable,
        Self::ApprovalRequested,
        Self::ApprovalResponded,
        Self::OutputAvailable,
        Self::OutputError,
        Self::OutputDenied,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::InputStreaming => "input-streaming",
            Self::InputAvailable => "input-available",
            Self::ApprovalRequested => "approval-requested",
            Self::ApprovalResponded => "approval-responded",
            Self::OutputAvailable => "output-available",
            Self::OutputError => "output-error",
            Self::OutputDenied => "output-denied",
        }
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the call still has no result.
    pub fn is_open(self) -> bool {
        match self {
            Self::InputStreaming
            | Self::InputAvailable
            | Self::ApprovalRequested
            | Self::ApprovalResponded => true,
            Self::OutputAvailable | Self::OutputError | Self::OutputDenied => false,
        }
    }

    /// The state of a call without a result.
    fn of_call(approval: Option<&PartApproval>) -> Self {
        match approval {
            None => Self::InputAvailable,
            Some(PartApproval { approved: None, .. }) => Self::ApprovalRequested,
            Some(_) => Self::ApprovalResponded,
        }
    }

    /// The state of a call with its result.
    fn of_result(approval: Option<&PartApproval>, is_error: bool) -> Self {
        if approval.is_some_and(|approval| approval.approved == Some(false)) {
            Self::OutputDenied
        } else if is_error {
            Self::OutputError
        } else {
            Self::OutputAvailable
        }
    }
}

impl Serialize for ToolState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The state of the user's approval in a call's part: requested, or requested and decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartApproval {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `None`: the user has not decided yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A part as it is read. Long fields are left unparsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error_text: Option<&'a RawValue>,
    #[serde(borrow)]
    preliminary: Option<&'a RawValue>,
    #[serde(borrow)]
    approval: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    media_type: Option<&'a RawValue>,
}

/// A tool's part as it is read.
pub struct ToolPart<'a> {
    /// `None`: a dynamic tool whose part has no name.
    pub name: Option<String>,
    pub call_id: String,
    /// `None`: a state that is unknown here.
    pub state: Option<ToolState>,
    pub input: Option<&'a RawValue>,
    pub output: Option<&'a RawValue>,
    pub error_text: Option<String>,
    /// Whether the tool will send more of its output.
    pub is_preliminary: bool,
    pub approval: Option<PartApproval>,
}

/// The fields that any part of a call has, whatever its other fields contain.
pub struct PartOfCall<'a> {
    pub name: Option<String>,
    pub call_id: Option<String>,
    pub input: Option<&'a RawValue>,
    /// The output and the error text, those that exist.
    pub results: Vec<&'a RawValue>,
}

impl<'a> Part<'a> {
    /// `None` if the JSON is not a part.
    pub fn parse(json: &'a RawValue) -> Option<Self> {
        json::decode(json.get()).ok()
    }

    pub fn kind(&self) -> PartKind<'_> {
        PartKind::parse(&self.kind)
    }

    pub fn text(&self) -> Option<String> {
        value_of(self.text).ok()?
    }

    /// The URL and the media type of a file.
    pub fn file(&self) -> Option<(String, String)> {
        Some((value_of(self.url).ok()??, value_of(self.media_type).ok()??))
    }

    /// `None` if this is not a tool's part. A field of the wrong type counts as missing.
    pub fn call(&self) -> Option<PartOfCall<'a>> {
        let tool_name: Option<String> = value_of(self.tool_name).ok().flatten();
        let name = match self.kind() {
            kind @ (PartKind::Tool(_) | PartKind::DynamicTool) => {
                kind.find_tool(tool_name.as_deref()).map(str::to_owned)
            }
            _ => return None,
        };
        Some(PartOfCall {
            name,
            call_id: value_of(self.tool_call_id).ok().flatten(),
            input: self.input,
            results: [self.output, self.error_text]
                .into_iter()
                .flatten()
                .collect(),
        })
    }

    /// `None` if this is not a tool's part, or if one of its fields has the wrong type.
    pub fn tool(&self) -> Option<ToolPart<'a>> {
        let name = match self.kind() {
            PartKind::Tool(name) => Some(name.to_owned()),
            PartKind::DynamicTool => value_of(self.tool_name).ok().flatten(),
            _ => return None,
        };
        let state: Option<String> = value_of(self.state).ok()?;
        let preliminary: Option<bool> = value_of(self.preliminary).ok()?;
        Some(ToolPart {
            name,
            call_id: value_of(self.tool_call_id).ok()??,
            state: state.as_deref().and_then(ToolState::find),
            input: self.input,
            output: self.output,
            error_text: value_of(self.error_text).ok()?,
            is_preliminary: preliminary == Some(true),
            approval: value_of(self.approval).ok()?,
        })
    }
}

fn value_of<T: for<'de> Deserialize<'de>>(
    field: Option<&RawValue>,
) -> Result<Option<T>, ReadError> {
    field.map(|json| json::decode(json.get())).transpose()
}

/// A part as it is written.
pub enum NewPart<'a> {
    Text(&'a str),
    Reasoning(String),
    Tool(NewToolPart<'a>),
    InputRequest(InputRequest),
}

/// The questions of a tool to the user, as clients see them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequest {
    /// The call that waits for the answers.
    pub tool_call_id: String,
    pub tool: String,
    /// The server whose tool asks, by the name given to `defineTool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The questions by their ids: a form, or a page to open.
    pub requests: Box<RawValue>,
    /// Whether the question no longer accepts an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_closed: bool,
}

impl Serialize for NewPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Text<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            text: &'a str,
        }
        #[derive(Serialize)]
        struct Data<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            /// A client replaces the data of a part with the same id.
            id: &'a str,
            data: &'a InputRequest,
        }
        match self {
            Self::Text(text) => Text {
                kind: kind::TEXT,
                text,
            }
            .serialize(serializer),
            Self::Reasoning(text) => Text {
                kind: kind::REASONING,
                text,
            }
            .serialize(serializer),
            Self::Tool(part) => part.serialize(serializer),
            Self::InputRequest(data) => Data {
                kind: kind::INPUT_REQUEST,
                id: &data.tool_call_id,
                data,
            }
            .serialize(serializer),
        }
    }
}

/// A tool's part as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewToolPart<'a> {
    #[serde(rename = "type")]
    kind: String,
    tool_call_id: String,
    state: ToolState,
    input: Box<RawValue>,
    /// The arguments as the model sent them, if they are not a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<ToolOutput<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<PartApproval>,
}

/// The output that a tool returned.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ToolOutput<'a> {
    Text(&'a str),
    Json(Box<RawValue>),
}

/// A result in the form for its call's part.
pub struct PartResult<'a> {
    pub content: &'a str,
    /// Whether `content` is the output as JSON, not as text.
    pub is_json: bool,
    pub is_error: bool,
    pub approval: Option<PartApproval>,
}

/// A call in the form for its part.
pub struct PartCall {
    pub id: String,
    pub tool_name: String,
    pub input: Box<RawValue>,
    pub raw_input: Option<String>,
    pub approval: Option<PartApproval>,
}

impl<'a> NewToolPart<'a> {
    /// The part of a call without a result.
    pub fn new(call: PartCall) -> Self {
        Self {
            kind: kind_of_tool(&call.tool_name),
            tool_call_id: call.id,
            state: ToolState::of_call(call.approval.as_ref()),
            input: call.input,
            raw_input: call.raw_input,
            output: None,
            error_text: None,
            approval: call.approval,
        }
    }

    /// Whether the part still needs the result of this call.
    pub fn awaits(&self, call_id: &str) -> bool {
        self.tool_call_id == call_id && self.state.is_open()
    }

    /// Adds the result to its call. An output that should be JSON but is not is an error.
    pub fn set_result(&mut self, result: PartResult<'a>) -> crate::error::Result<()> {
        self.state = ToolState::of_result(result.approval.as_ref(), result.is_error);
        self.approval = result.approval;
        match self.state {
            ToolState::OutputAvailable => {
                self.output = Some(if result.is_json {
                    ToolOutput::Json(json::raw(result.content.to_owned())?)
                } else {
                    ToolOutput::Text(result.content)
                });
            }
            ToolState::OutputError => self.error_text = Some(result.content),
            // A declined call has no output.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn raw(json: &str) -> Box<RawValue> {
        json::raw(json.to_owned()).unwrap()
    }

    fn requested() -> PartApproval {
        PartApproval {
            id: Some("a".to_owned()),
            ..PartApproval::default()
        }
    }

    fn decided(approved: bool) -> PartApproval {
        PartApproval {
            approved: Some(approved),
            ..requested()
        }
    }

    fn call(approval: Option<PartApproval>) -> NewToolPart<'static> {
        NewToolPart::new(PartCall {
            id: "c".to_owned(),
            tool_name: "pay".to_owned(),
            input: raw(r#"{"n":1.0}"#),
            raw_input: None,
            approval,
        })
    }

    fn settled(approval: Option<PartApproval>, is_error: bool) -> NewToolPart<'static> {
        let mut part = call(approval.clone());
        let result = PartResult {
            content: "done",
            is_json: false,
            is_error,
            approval,
        };
        part.set_result(result).unwrap();
        part
    }

    #[test]
    fn states_round_trip_by_name() {
        for state in ToolState::ALL {
            assert_eq!(ToolState::find(state.name()), Some(state));
        }
        assert_eq!(ToolState::find("output"), None);
    }

    #[test]
    fn the_state_is_derived_from_approval_and_result() {
        for (part, expected) in [
            (call(None), "input-available"),
            (call(Some(requested())), "approval-requested"),
            (call(Some(decided(true))), "approval-responded"),
            (call(Some(decided(false))), "approval-responded"),
            (settled(None, false), "output-available"),
            (settled(Some(decided(true)), false), "output-available"),
            (settled(None, true), "output-error"),
            (settled(Some(decided(false)), true), "output-denied"),
        ] {
            assert_eq!(part.state.name(), expected);
            assert_eq!(part.awaits("c"), !expected.starts_with("output-"));
            assert!(!part.awaits("d"));
        }
    }

    #[test]
    fn a_part_round_trips() {
        let part = NewPart::Tool(settled(Some(decided(true)), true));
        let json = json::encode(&part).unwrap();
        assert_eq!(
            json,
            r#"{"type":"tool-pay","toolCallId":"c","state":"output-error","input":{"n":1.0},"errorText":"done","approval":{"id":"a","approved":true}}"#
        );
        let json = raw(&json);
        let read = Part::parse(&json).unwrap().tool().unwrap();
        assert_eq!(read.name.as_deref(), Some("pay"));
        assert_eq!(read.call_id, "c");
        assert_eq!(read.state, Some(ToolState::OutputError));
        assert_eq!(read.input.map(RawValue::get), Some(r#"{"n":1.0}"#));
        assert_eq!(read.error_text.as_deref(), Some("done"));
        assert_eq!(read.approval, Some(decided(true)));
    }

    #[test]
    fn a_json_output_stays_json() {
        let result = |content| PartResult {
            content,
            is_json: true,
            is_error: false,
            approval: None,
        };
        let mut part = call(None);
        part.set_result(result(r#"{"n": 1.0}"#)).unwrap();
        let written = json::encode(&part).unwrap();
        assert!(written.contains(r#""output":{"n": 1.0}"#), "{written}");
        assert!(call(None).set_result(result("{")).is_err());
    }

    #[test]
    fn field_names_are_the_same_for_every_reader() {
        let mut part = settled(None, false);
        part.error_text = Some("no");
        let written = serde_json::to_value(&part).unwrap();
        let words = serde_json::to_value(NewPart::Text("hi")).unwrap();
        assert_eq!(words[field::TEXT], "hi");
        let names = [
            field::KIND,
            field::CALL_ID,
            field::STATE,
            field::INPUT,
            field::OUTPUT,
            field::ERROR_TEXT,
        ];
        for name in names {
            assert_ne!(written[name], Value::Null, "{name}");
        }
        let dynamic =
            json!({field::KIND: "dynamic-tool", field::TOOL_NAME: "x", field::CALL_ID: "c"});
        let dynamic = raw(&dynamic.to_string());
        let read = Part::parse(&dynamic).unwrap().tool().unwrap();
        assert_eq!(read.name.as_deref(), Some("x"));
    }

    #[test]
    fn a_part_with_wrong_field_types_is_not_a_tool_part() {
        for wrong in [
            r#"{"type":"text","toolCallId":"c"}"#,
            r#"{"type":"tool-x"}"#,
            r#"{"type":"tool-x","toolCallId":5}"#,
            r#"{"type":"tool-x","toolCallId":"c","state":5}"#,
            r#"{"type":"tool-x","toolCallId":"c","errorText":5}"#,
            r#"{"type":"tool-x","toolCallId":"c","preliminary":"yes"}"#,
            r#"{"type":"tool-x","toolCallId":"c","approval":{"approved":1}}"#,
        ] {
            let wrong = raw(wrong);
            assert!(Part::parse(&wrong).unwrap().tool().is_none(), "{wrong}");
        }
        let odd = raw(r#"{"type":"tool-x","toolCallId":"c","state":"odd","output":null}"#);
        let odd = Part::parse(&odd).unwrap().tool().unwrap();
        assert!(odd.state.is_none() && odd.output.is_none());
    }
}
