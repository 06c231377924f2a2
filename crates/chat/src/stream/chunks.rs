//! The chunks of a UI message stream, and their form as server-sent events. A chunk is one line of
//! JSON: this text is stored, sent to current listeners and replayed to later ones.

use serde::Serialize;

use base::json::{self, RawValue};
use base::part::InputRequest;
use models::FinishReason;

/// The headers of a stream, as the stock client and proxies expect them.
pub const HEADERS: [(&str, &str); 4] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-vercel-ai-ui-message-stream", "v1"),
    // Without this header nginx would buffer the events.
    ("x-accel-buffering", "no"),
];

/// The end of a stream, after its last chunk.
pub const SSE_DONE: &str = "data: [DONE]\n\n";

#[derive(Clone, Debug, Serialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Chunk {
    Start {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Box<RawValue>>,
    },
    StartStep,
    TextStart {
        id: String,
    },
    TextDelta {
        id: String,
        delta: String,
    },
    TextEnd {
        id: String,
    },
    ReasoningStart {
        id: String,
    },
    ReasoningDelta {
        id: String,
        delta: String,
    },
    ReasoningEnd {
        id: String,
    },
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
    },
    ToolInputDelta {
        tool_call_id: String,
        input_text_delta: String,
    },
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Box<RawValue>,
    },
    /// The model's arguments are not a JSON object: `input` is the text that the model sent.
    ToolInputError {
        tool_call_id: String,
        tool_name: String,
        input: String,
        error_text: String,
    },
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: Box<RawValue>,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
    },
    ToolOutputDenied {
        tool_call_id: String,
    },
    /// A client replaces the part with the same id.
    DataInputRequest {
        id: String,
        data: InputRequest,
    },
    File {
        url: String,
        media_type: String,
    },
    FinishStep,
    Finish {
        finish_reason: FinishReason,
        #[serde(skip_serializing_if = "Option::is_none")]
        message_metadata: Option<Box<RawValue>>,
    },
    Abort {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Error {
        error_text: String,
    },
}

impl Chunk {
    /// The chunk as one line of JSON. Input and output are kept as they were sent and may contain
    /// line breaks, which would split an event.
    pub fn json(&self) -> String {
        let json = json::encode(self).unwrap_or_else(|_| UNSAYABLE.to_owned());
        if json.contains(['\n', '\r']) {
            // Line breaks inside strings are escaped, so these are between tokens.
            return json.replace(['\n', '\r'], " ");
        }
        json
    }
}

/// Every chunk can be serialized; if one couldn't, the client would get this error.
const UNSAYABLE: &str = r#"{"type":"error","errorText":"This part of the answer could not be sent. It is in the history."}"#;

/// A chunk as a server-sent event.
pub fn sse(chunk_json: &str) -> String {
    format!("data: {chunk_json}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        json::raw(text.to_owned()).unwrap()
    }

    #[test]
    fn chunks_have_the_field_names_of_the_clients() {
        let id = || "c".to_owned();
        let cases = [
            (
                Chunk::Start {
                    message_id: Some("m".to_owned()),
                    message_metadata: None,
                },
                r#"{"type":"start","messageId":"m"}"#,
            ),
            (Chunk::StartStep, r#"{"type":"start-step"}"#),
            (
                Chunk::ReasoningDelta {
                    id: "r0".to_owned(),
                    delta: "a\nb".to_owned(),
                },
                r#"{"type":"reasoning-delta","id":"r0","delta":"a\nb"}"#,
            ),
            (
                Chunk::ToolInputDelta {
                    tool_call_id: id(),
                    input_text_delta: "{".to_owned(),
                },
                r#"{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{"}"#,
            ),
            (
                Chunk::ToolInputAvailable {
                    tool_call_id: id(),
                    tool_name: "t".to_owned(),
                    input: raw(r#"{"n":1.0}"#),
                },
                r#"{"type":"tool-input-available","toolCallId":"c","toolName":"t","input":{"n":1.0}}"#,
            ),
            (
                Chunk::ToolApprovalRequest {
                    approval_id: "a".to_owned(),
                    tool_call_id: id(),
                },
                r#"{"type":"tool-approval-request","approvalId":"a","toolCallId":"c"}"#,
            ),
            (
                Chunk::ToolOutputDenied { tool_call_id: id() },
                r#"{"type":"tool-output-denied","toolCallId":"c"}"#,
            ),
            (
                Chunk::Finish {
                    finish_reason: FinishReason::ContentFilter,
                    message_metadata: Some(raw(r#"{"k":1}"#)),
                },
                r#"{"type":"finish","finishReason":"content-filter","messageMetadata":{"k":1}}"#,
            ),
            (Chunk::Abort { reason: None }, r#"{"type":"abort"}"#),
            (
                Chunk::Error {
                    error_text: "no".to_owned(),
                },
                r#"{"type":"error","errorText":"no"}"#,
            ),
        ];
        for (chunk, json) in cases {
            assert_eq!(chunk.json(), json);
        }
    }

    #[test]
    fn a_chunk_is_one_event_whatever_the_tool_returned() {
        let chunk = Chunk::ToolOutputAvailable {
            tool_call_id: "c".to_owned(),
            output: raw("{\n  \"a\": \"x\\ny\"\r\n}"),
        };
        assert_eq!(
            sse(&chunk.json()),
            "data: {\"type\":\"tool-output-available\",\"toolCallId\":\"c\",\"output\":{   \"a\": \"x\\ny\"  }}\n\n"
        );
    }
}
