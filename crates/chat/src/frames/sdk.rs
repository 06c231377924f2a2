//! The protocol of the AI SDK's `WebSocketChatTransport`: requests `send`, `resume` and
//! `abort`, answered by `start`, `chunk`, `end`, `error` and `no-active` with the request's
//! id.
//!
//! A socket uses it from its first such request on. The object still renders frames in the
//! format of `agents`, and each is translated when it is sent. Frames without a translation
//! are not sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use base::error::{Error, Result};
use base::json::{self, RawValue};

use crate::request::{ChatRequest, parse_chat_request};

/// The requests of such a socket whose ids differ from those of their turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SdkSocket {
    /// The newest resume request, if its turn is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    pub turn_id: String,
    pub request_id: String,
}

/// The fields of a `send` request, except its id.
#[derive(Default)]
pub struct SentFields<'a> {
    pub trigger: Option<&'a RawValue>,
    pub message_id: Option<&'a RawValue>,
    pub messages: Option<&'a RawValue>,
    /// Further fields of a chat request.
    pub body: Option<&'a RawValue>,
}

/// Converts a `send` request into a chat request.
pub fn parse_sent(fields: &SentFields<'_>) -> Result<ChatRequest> {
    let mut parts = Vec::new();
    for (name, value) in [
        ("trigger", fields.trigger),
        ("messageId", fields.message_id),
        ("messages", fields.messages),
    ] {
        if let Some(value) = value {
            parts.push(format!(r#""{name}":{}"#, value.get()));
        }
    }
    if let Some(body) = fields.body {
        let inner = body.get().trim().strip_prefix('{');
        let inner = inner.and_then(|inner| inner.strip_suffix('}'));
        let inner = inner.ok_or_else(|| Error::invalid("body", "`body` must be an object."))?;
        if !inner.trim().is_empty() {
            parts.push(inner.to_owned());
        }
    }
    parse_chat_request(format!("{{{}}}", parts.join(",")).as_bytes())
}

pub fn render_start(request_id: &str) -> String {
    render("start", request_id, "")
}

/// No turn runs.
pub fn render_no_active(request_id: &str) -> String {
    render("no-active", request_id, "")
}

pub fn render_error(request_id: &str, message: &str) -> String {
    let message = Value::from(message);
    render("error", request_id, &format!(r#","errorText":{message}"#))
}

/// The prefixes of frames that this module itself renders for a socket. No frame of
/// `agents` has them.
const OWN: [&str; 3] = [
    r#"{"type":"start","#,
    r#"{"type":"no-active","#,
    r#"{"type":"error","#,
];

fn render(kind: &str, request_id: &str, fields: &str) -> String {
    let id = Value::from(request_id);
    format!(r#"{{"type":"{kind}","requestId":{id}{fields}}}"#)
}

/// The translated fields of an `agents` frame.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentsFrame {
    #[serde(default)]
    id: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    error: bool,
    seq: Option<usize>,
}

impl SdkSocket {
    /// Translates a frame for this socket's transport. `None`: nothing is sent.
    pub fn translate(&self, frame: &str) -> Option<String> {
        if OWN.iter().any(|beginning| frame.starts_with(beginning)) {
            return Some(frame.to_owned());
        }
        if !frame.starts_with(r#"{"type":"cf_agent_use_chat_response""#) {
            return None;
        }
        let frame_fields: AgentsFrame = json::decode(frame).ok()?;
        let id = match &self.resumed {
            Some(resumed) if resumed.turn_id == frame_fields.id => &resumed.request_id,
            _ => &frame_fields.id,
        };
        if frame_fields.done && frame_fields.error {
            return Some(render_error(id, &frame_fields.body));
        }
        if frame_fields.done {
            return Some(render("end", id, ""));
        }
        let (sequence, chunk) = (frame_fields.seq?, frame_fields.body);
        let fields = format!(r#","sequence":{sequence},"chunk":{chunk}"#);
        Some(render("chunk", id, &fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::outgoing::{
        FrameHeader, TurnOutcome, render_clear, render_failed, render_first_messages,
        render_identity, render_message_updated, render_messages, render_resume_none,
        render_resuming, render_rpc_result,
    };
    use serde_json::json;

    fn socket(turn_id: &str, request_id: &str) -> SdkSocket {
        SdkSocket {
            resumed: Some(Resumed {
                turn_id: turn_id.to_owned(),
                request_id: request_id.to_owned(),
            }),
        }
    }

    fn translated(socket: &SdkSocket, frame: &str) -> Value {
        let translated = socket.translate(frame).unwrap_or("null".to_owned());
        serde_json::from_str(&translated).unwrap()
    }

    #[test]
    fn a_turn_is_translated_to_ordered_chunks_and_an_end() {
        for (turn, socket, request) in [
            ("r", SdkSocket::default(), "r"),
            ("t", socket("t", "again"), "again"),
            ("other", socket("t", "again"), "other"),
        ] {
            let header = FrameHeader {
                id: turn,
                is_continuation: false,
                is_replay: false,
            };
            let chunk = header.render_chunk(r#"{"type":"text-delta","delta":"\"}"}"#, 3);
            assert_eq!(
                translated(&socket, &chunk),
                json!({"type": "chunk", "requestId": request, "sequence": 3,
                    "chunk": {"type": "text-delta", "delta": "\"}"}})
            );
            for outcome in [TurnOutcome::Completed, TurnOutcome::Aborted] {
                assert_eq!(
                    translated(&socket, &header.render_done(outcome)),
                    json!({"type": "end", "requestId": request})
                );
            }
            assert_eq!(
                translated(&socket, &render_failed(turn, "It broke.", false)),
                json!({"type": "error", "requestId": request, "errorText": "It broke."})
            );
            assert_eq!(
                translated(&socket, &header.render_replay_complete()),
                Value::Null
            );
        }
    }

    #[test]
    fn frames_that_the_transport_does_not_know_are_not_sent() {
        for frame in [
            render_identity("a"),
            render_messages("[]"),
            render_first_messages("[]"),
            render_message_updated("{}"),
            render_clear(),
            render_resuming("r", None),
            render_resume_none(None),
            render_rpc_result("1", "{}"),
        ] {
            assert_eq!(SdkSocket::default().translate(&frame), None, "{frame}");
        }
        for frame in [
            render_start("r"),
            render_no_active("r"),
            render_error("r", "No."),
        ] {
            assert_eq!(SdkSocket::default().translate(&frame), Some(frame));
        }
    }

    #[test]
    fn a_send_request_is_a_chat_request_with_its_body_fields() {
        let raw = |text: &'static str| json::decode::<&RawValue>(text).unwrap();
        let fields = || SentFields {
            trigger: Some(raw(r#""submit-message""#)),
            messages: Some(raw(r#"[{"id":"m","role":"user","parts":[]}]"#)),
            ..SentFields::default()
        };
        for body in [None, Some("{}"), Some(" { } ")] {
            let body = body.map(raw);
            let request = parse_sent(&SentFields { body, ..fields() }).unwrap();
            assert_eq!((request.messages.len(), request.model), (1, None));
        }
        let body = Some(raw(r#"{"model":"demo"}"#));
        let request = parse_sent(&SentFields { body, ..fields() }).unwrap();
        assert_eq!(request.model.unwrap().as_str(), "demo");
        for body in ["5", "[]", r#"{"messages":[]}"#] {
            let body = Some(raw(body));
            assert!(parse_sent(&SentFields { body, ..fields() }).is_err());
        }
        assert!(parse_sent(&SentFields::default()).is_err());
    }
}
