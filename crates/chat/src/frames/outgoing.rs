//! Renders the frames that are sent to sockets. Each function renders one frame. Chunks and
//! messages are passed in as stored JSON.

use serde::Serialize;
use serde_json::Value;

use base::error::Error;
use base::json::{self, json};

/// The name by which `agents/client` identifies this kind of agent.
const AGENT: &str = "session-agent";

/// The first frame of a socket.
///
/// It has an empty `requestId`, like lists of messages and other unrequested frames. The AI
/// SDK's own transport treats a frame without a `requestId` as a failure, and ignores one
/// that names none of its requests.
pub fn render_identity(agent_name: &str) -> String {
    let frame =
        json!({"type": "cf_agent_identity", "name": agent_name, "agent": AGENT, "requestId": ""});
    json::text(&frame)
}

/// How a turn ended, as its last frame reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnOutcome {
    Completed,
    Aborted,
    Error,
}

/// The fields that the frames of one turn share.
#[derive(Clone, Copy, Debug)]
pub struct FrameHeader<'a> {
    /// The request that the turn answers.
    pub id: &'a str,
    /// The turn continues a message that the clients already have.
    pub is_continuation: bool,
    /// The frames are a replay for a socket that requested to resume.
    pub is_replay: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    body: &'a str,
    done: bool,
    #[serde(skip_serializing_if = "is_false")]
    error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    replay: bool,
    #[serde(skip_serializing_if = "is_false")]
    replay_complete: bool,
    #[serde(skip_serializing_if = "is_false")]
    continuation: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<TurnOutcome>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> FrameHeader<'a> {
    fn response(&self) -> Response<'a> {
        Response {
            kind: "cf_agent_use_chat_response",
            id: self.id,
            body: "",
            done: false,
            error: false,
            seq: None,
            replay: self.is_replay,
            replay_complete: false,
            continuation: self.is_continuation,
            outcome: None,
        }
    }

    /// A chunk; `seq` numbers the turn's chunks from 0.
    pub fn render_chunk(&self, chunk_json: &str, seq: usize) -> String {
        let is_named_start = chunk_json.starts_with(r#"{"type":"start","#);
        let body = if self.is_continuation && is_named_start {
            NAMELESS_START
        } else {
            chunk_json
        };
        render(&Response {
            body,
            seq: Some(seq),
            ..self.response()
        })
    }

    /// The end of a replay: the following chunks are live.
    pub fn render_replay_complete(&self) -> String {
        render(&Response {
            replay: true,
            replay_complete: true,
            ..self.response()
        })
    }

    pub fn render_done(&self, outcome: TurnOutcome) -> String {
        render(&Response {
            done: true,
            outcome: Some(outcome),
            ..self.response()
        })
    }
}

/// A `start` with an id would make the client start a new message.
const NAMELESS_START: &str = r#"{"type":"start"}"#;

/// A failed request or turn. `message` is for people.
pub fn render_failed(id: &str, message: &str, is_continuation: bool) -> String {
    let frame_header = FrameHeader {
        id,
        is_continuation,
        is_replay: false,
    };
    render(&Response {
        body: message,
        done: true,
        error: true,
        outcome: Some(TurnOutcome::Error),
        ..frame_header.response()
    })
}

/// The session's messages as a JSON array. A client replaces its own list with them.
pub fn render_messages(messages_json: &str) -> String {
    format!(r#"{{"type":"cf_agent_chat_messages","messages":{messages_json},"requestId":""}}"#)
}

/// The session's messages for a newly opened socket. The client keeps unsent messages in
/// its list.
pub fn render_first_messages(messages_json: &str) -> String {
    format!(
        r#"{{"type":"cf_agent_chat_messages","messages":{messages_json},"connect":true,"requestId":""}}"#
    )
}

/// One message, after a call in it was answered.
pub fn render_message_updated(message_json: &str) -> String {
    format!(r#"{{"type":"cf_agent_message_updated","message":{message_json},"requestId":""}}"#)
}

pub fn render_clear() -> String {
    json::text(&json!({"type": "cf_agent_chat_clear", "requestId": ""}))
}

/// A turn is running. A client that acknowledges this receives its chunks. `probe_id` is
/// the one of the request, if it had one.
pub fn render_resuming(request_id: &str, probe_id: Option<&str>) -> String {
    probed(
        json!({"type": "cf_agent_stream_resuming", "id": request_id}),
        probe_id,
    )
}

/// No turn runs.
pub fn render_resume_none(probe_id: Option<&str>) -> String {
    probed(
        json!({"type": "cf_agent_stream_resume_none", "reason": "idle"}),
        probe_id,
    )
}

fn probed(mut frame: Value, probe_id: Option<&str>) -> String {
    if let (Some(probe_id), Some(fields)) = (probe_id, frame.as_object_mut()) {
        fields.insert("probeId".to_owned(), probe_id.into());
    }
    json::text(&frame)
}

/// An operation's result. `result_json` is what a response's body would contain.
pub fn render_rpc_result(id: &str, result_json: &str) -> String {
    let id = Value::from(id);
    format!(r#"{{"type":"rpc","id":{id},"success":true,"done":true,"result":{result_json}}}"#)
}

/// The client makes an error from the message. The code and the details are separate
/// fields.
pub fn render_rpc_error(id: &str, error: &Error) -> String {
    json::text(&json!({
        "type": "rpc",
        "id": id,
        "success": false,
        "error": error.message,
        "code": error.code.name(),
        "details": error.details(),
    }))
}

pub fn render_state_error(message: &str) -> String {
    json::text(&json!({"type": "cf_agent_state_error", "error": message}))
}

fn render(response: &Response<'_>) -> String {
    json::encode(response).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::error::Code;

    const LIVE: FrameHeader<'_> = FrameHeader {
        id: "r",
        is_continuation: false,
        is_replay: false,
    };

    fn read(frame: &str) -> Value {
        serde_json::from_str(frame).unwrap()
    }

    #[test]
    fn a_chunk_is_sent_as_text() {
        assert_eq!(
            read(&LIVE.render_chunk(r#"{"type":"start","messageId":"m"}"#, 0)),
            json!({"type": "cf_agent_use_chat_response", "id": "r", "done": false, "seq": 0,
                "body": "{\"type\":\"start\",\"messageId\":\"m\"}"})
        );
    }

    #[test]
    fn a_continuation_starts_without_a_message_id() {
        let frame_header = FrameHeader {
            is_continuation: true,
            ..LIVE
        };
        let start = read(&frame_header.render_chunk(r#"{"type":"start","messageId":"m"}"#, 0));
        assert_eq!(start["body"], r#"{"type":"start"}"#);
        assert_eq!(start["continuation"], true);
        let step = read(&frame_header.render_chunk(r#"{"type":"start-step"}"#, 1));
        assert_eq!(step["body"], r#"{"type":"start-step"}"#);
    }

    #[test]
    fn a_replay_is_marked_and_has_an_end() {
        let frame_header = FrameHeader {
            is_replay: true,
            ..LIVE
        };
        assert_eq!(read(&frame_header.render_chunk("{}", 7))["replay"], true);
        assert_eq!(
            read(&frame_header.render_replay_complete()),
            json!({"type": "cf_agent_use_chat_response", "id": "r", "body": "", "done": false,
                "replay": true, "replayComplete": true})
        );
        assert_eq!(
            read(&frame_header.render_done(TurnOutcome::Completed)),
            json!({"type": "cf_agent_use_chat_response", "id": "r", "body": "", "done": true,
                "replay": true, "outcome": "completed"})
        );
    }

    #[test]
    fn a_turn_ends_with_a_frame_for_its_outcome() {
        assert_eq!(
            read(&LIVE.render_done(TurnOutcome::Aborted)),
            json!({"type": "cf_agent_use_chat_response", "id": "r", "body": "", "done": true, "outcome": "aborted"})
        );
        assert_eq!(
            read(&render_failed("r", "The model broke off.", true)),
            json!({"type": "cf_agent_use_chat_response", "id": "r", "body": "The model broke off.",
                "done": true, "error": true, "continuation": true, "outcome": "error"})
        );
    }

    #[test]
    fn a_response_has_the_id_of_its_request() {
        assert_eq!(
            read(&render_resuming("r", Some("p"))),
            json!({"type": "cf_agent_stream_resuming", "id": "r", "probeId": "p"})
        );
        assert_eq!(
            read(&render_resuming("r", None)),
            json!({"type": "cf_agent_stream_resuming", "id": "r"})
        );
        assert_eq!(
            read(&render_resume_none(Some("p"))),
            json!({"type": "cf_agent_stream_resume_none", "reason": "idle", "probeId": "p"})
        );
    }

    #[test]
    fn an_operations_answer_is_forwarded_unchanged() {
        assert_eq!(
            render_rpc_result("a\"b", r#"{"n":1.0}"#),
            r#"{"type":"rpc","id":"a\"b","success":true,"done":true,"result":{"n":1.0}}"#
        );
        let error = Error::new(Code::LeafMoved, "It moved.").with("leafId", "e1");
        assert_eq!(
            read(&render_rpc_error("1", &error)),
            json!({"type": "rpc", "id": "1", "success": false, "error": "It moved.",
                "code": "leaf_moved", "details": {"leafId": "e1"}})
        );
    }

    #[test]
    fn the_history_is_forwarded_unchanged() {
        assert_eq!(
            render_messages(r#"[{"id":"m","n":1.0}]"#),
            r#"{"type":"cf_agent_chat_messages","messages":[{"id":"m","n":1.0}],"requestId":""}"#
        );
        assert_eq!(
            render_message_updated(r#"{"id":"m"}"#),
            r#"{"type":"cf_agent_message_updated","message":{"id":"m"},"requestId":""}"#
        );
        assert_eq!(
            read(&render_clear()),
            json!({"type": "cf_agent_chat_clear", "requestId": ""})
        );
        assert_eq!(
            read(&render_identity("user/1")),
            json!({"type": "cf_agent_identity", "name": "user/1", "agent": "session-agent", "requestId": ""})
        );
    }
}
