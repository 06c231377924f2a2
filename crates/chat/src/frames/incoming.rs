//! Parses the frames that a client sends through a socket. Frames of unknown types are
//! ignored, as the stock server does. An invalid frame of a known type is answered with an
//! error, because its client waits.

use serde::Deserialize;

use crate::frames::outgoing::{render_failed, render_rpc_error, render_state_error};
use crate::frames::sdk::{self, SentFields, parse_sent};
use crate::request::answers::{ApprovalAnswer, CallAnswer, ClientAnswer, ClientOutcome};
use crate::request::client_tools::parse_client_tools;
use crate::request::{ChatRequest, parse_chat_request};
use base::error::{Error, Result};
use base::ids::{Id, MAX_ID_CHARS};
use base::json::{self, RawValue, list};
use base::part::ToolState;
use models::ToolDefinition;

/// The longest frame: the longest body as text within text (which doubles each of its
/// quotes), plus the frame around the body. The runtime's own limit for a socket message is
/// 32 MiB.
pub const MAX_FRAME_BYTES: usize = 8 << 20;

/// The most arguments that are read; an operation takes one.
const MAX_ARGS: usize = 10;

/// The answer to a client that tries to set shared state.
const NO_STATE: &str =
    "This agent has no shared state. Store data in blocks of its context memory.";

#[derive(Debug)]
pub enum Incoming {
    /// Start a turn; its chunks are sent under `id`.
    Chat {
        id: String,
        request: ChatRequest,
    },
    /// Stop the turn of that request.
    Cancel {
        id: String,
    },
    /// Delete the session's messages.
    Clear,
    /// An answer to a call; with `continues`, the client waits for the turn to continue.
    Answer {
        answer: CallAnswer,
        continues: bool,
        client_tools: Vec<ToolDefinition>,
    },
    ResumeRequest {
        probe_id: Option<String>,
    },
    ResumeAck {
        id: String,
    },
    /// A request of the AI SDK's own transport.
    Sdk(SdkRequest),
    /// Call an operation; `input` is its JSON text.
    Rpc {
        id: String,
        operation: String,
        input: String,
    },
    /// An invalid frame, and the frame to reply with.
    Refused(String),
    /// A frame of an unknown type.
    Ignored,
}

/// `id` is the request's. The transport's own `id` is that of the page's chat.
#[derive(Debug)]
pub enum SdkRequest {
    /// Start a turn; its chunks are sent under `id`.
    Send { id: String, request: ChatRequest },
    /// Replay the running turn under `id`, and follow it.
    Resume { id: String },
    /// Stop the turn of that request, or stop following it.
    Abort { id: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    init: Option<&'a RawValue>,
    #[serde(borrow)]
    probe_id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    #[serde(borrow)]
    error_text: Option<&'a RawValue>,
    #[serde(borrow)]
    approved: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
    #[serde(borrow)]
    auto_continue: Option<&'a RawValue>,
    #[serde(borrow)]
    client_tools: Option<&'a RawValue>,
    #[serde(borrow)]
    trigger: Option<&'a RawValue>,
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

pub fn parse_frame(text: &str) -> Incoming {
    if text.len() > MAX_FRAME_BYTES {
        return Incoming::Ignored;
    }
    let Ok(frame) = json::decode::<Frame<'_>>(text) else {
        return Incoming::Ignored;
    };
    match frame.kind.as_str() {
        "rpc" => rpc(&frame),
        "cf_agent_use_chat_request" => chat(&frame),
        "cf_agent_chat_request_cancel" => named(&frame, |id| Incoming::Cancel { id }),
        "cf_agent_chat_clear" => Incoming::Clear,
        "cf_agent_tool_result" => answer(&frame, tool_result(&frame)),
        "cf_agent_tool_approval" => answer(&frame, tool_approval(&frame)),
        "cf_agent_stream_resume_request" => Incoming::ResumeRequest {
            probe_id: find_name(frame.probe_id),
        },
        "cf_agent_stream_resume_ack" => named(&frame, |id| Incoming::ResumeAck { id }),
        "cf_agent_state" => Incoming::Refused(render_state_error(NO_STATE)),
        "send" | "resume" | "abort" => {
            find_name(frame.request_id).map_or(Incoming::Ignored, |id| sdk_request(&frame, id))
        }
        // This includes `cf_agent_chat_messages`: the log is authoritative, so a
        // client's changes to its own copy are ignored.
        _ => Incoming::Ignored,
    }
}

fn sdk_request(frame: &Frame<'_>, id: String) -> Incoming {
    match frame.kind.as_str() {
        "send" => {
            let sent = parse_sent(&SentFields {
                trigger: frame.trigger,
                message_id: frame.message_id,
                messages: frame.messages,
                body: frame.body,
            });
            match sent {
                Ok(request) => Incoming::Sdk(SdkRequest::Send { id, request }),
                Err(error) => Incoming::Refused(sdk::render_error(&id, &error.message)),
            }
        }
        "resume" => Incoming::Sdk(SdkRequest::Resume { id }),
        _ => Incoming::Sdk(SdkRequest::Abort { id }),
    }
}

fn named(frame: &Frame<'_>, incoming: impl FnOnce(String) -> Incoming) -> Incoming {
    find_name(frame.id).map_or(Incoming::Ignored, incoming)
}

fn chat(frame: &Frame<'_>) -> Incoming {
    #[derive(Deserialize)]
    struct Init<'a> {
        method: Option<String>,
        #[serde(borrow)]
        body: Option<&'a RawValue>,
    }
    let Some(id) = find_name(frame.id) else {
        return Incoming::Ignored;
    };
    let init = frame
        .init
        .and_then(|init| json::decode::<Init<'_>>(init.get()).ok());
    let request = match init {
        Some(init) if init.method.as_deref() == Some("POST") => {
            let body = init.body.and_then(find_text);
            body.ok_or_else(|| Error::invalid("init.body", "`init.body` must be JSON as text."))
                .and_then(|body| parse_chat_request(body.as_bytes()))
        }
        _ => Err(Error::invalid(
            "init.method",
            "`init.method` must be `POST`.",
        )),
    };
    match request {
        Ok(request) => Incoming::Chat { id, request },
        Err(error) => Incoming::Refused(render_failed(&id, &error.message, false)),
    }
}

/// An answer is final, so an invalid one is dropped and the call keeps waiting.
fn answer(frame: &Frame<'_>, answer: Option<CallAnswer>) -> Incoming {
    let tools = || -> Result<Vec<ToolDefinition>> {
        let Some(tools) = frame.client_tools else {
            return Ok(Vec::new());
        };
        json::check_text(tools.get())?;
        parse_client_tools("clientTools", tools)
    };
    match (answer, tools()) {
        (Some(answer), Ok(client_tools)) => Incoming::Answer {
            answer,
            continues: is_true(frame.auto_continue),
            client_tools,
        },
        _ => Incoming::Ignored,
    }
}

fn tool_result(frame: &Frame<'_>) -> Option<CallAnswer> {
    let tool_call_id = call_id(frame)?;
    let state = frame.state.and_then(find_text);
    let outcome = if state.as_deref().and_then(ToolState::find) == Some(ToolState::OutputError) {
        ClientOutcome::error(frame.error_text.and_then(find_text))
    } else {
        json::check_text(frame.output.map_or("null", RawValue::get)).ok()?;
        ClientOutcome::output(frame.output)
    };
    Some(CallAnswer::Tool(ClientAnswer {
        tool_call_id,
        outcome,
        provider_data: None,
    }))
}

fn tool_approval(frame: &Frame<'_>) -> Option<CallAnswer> {
    Some(CallAnswer::Approval(ApprovalAnswer {
        tool_call_id: call_id(frame)?,
        approval_id: None,
        approved: is_true(frame.approved),
        reason: frame.reason.and_then(find_text),
    }))
}

fn rpc(frame: &Frame<'_>) -> Incoming {
    // Without an id, the client could not match the reply to its call.
    let Some(id) = find_name(frame.id) else {
        return Incoming::Ignored;
    };
    let refuse = |field: &str, message: &str| {
        Incoming::Refused(render_rpc_error(&id, &Error::invalid(field, message)))
    };
    let Some(operation) = find_name(frame.method) else {
        return refuse("method", "`method` must name an operation.");
    };
    let args = frame.args.map_or("[]", RawValue::get);
    let mut args = json::Reader::new(args);
    let Ok(args) = list::<_, &RawValue, 0, MAX_ARGS>(&mut args) else {
        return refuse("args", "`args` must be an array of one object.");
    };
    let input = match args.as_slice() {
        [] => "{}",
        [input] if input.get() == "null" => "{}",
        [input] => input.get(),
        _ => {
            return refuse(
                "args",
                "An operation takes one object: `call(\"createSession\", [{ name: \"first\" }])`.",
            );
        }
    };
    Incoming::Rpc {
        input: input.to_owned(),
        operation,
        id,
    }
}

fn call_id(frame: &Frame<'_>) -> Option<Id> {
    Id::parse(find_name(frame.tool_call_id)?).ok()
}

/// The client's id, if it is valid.
fn find_name(value: Option<&RawValue>) -> Option<String> {
    let longest = "\"\"".len() + MAX_ID_CHARS * "\\uD83D\\uDE00".len();
    let name = find_text(value.filter(|value| value.get().len() <= longest)?)?;
    Id::parse(name).ok().map(|id| id.to_string())
}

fn find_text(value: &RawValue) -> Option<String> {
    json::decode(value.get()).ok()
}

fn is_true(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get() == "true")
}

#[cfg(test)]
mod tests;
