//! The result of an MCP method, and the format in which it is sent.

use serde::Serialize;

use super::message::RpcError;
use super::outbox::event_of;
use base::database::SqlText;
use base::error::Error;
use base::json;

/// The answer to a request.
pub struct McpAnswer {
    pub status: u16,
    pub content_type: &'static str,
    /// Empty if there is no content.
    pub body: SqlText,
    /// The id of the new session, for the header `mcp-session-id`.
    pub session: Option<String>,
    /// An error that must be logged.
    pub failure: Option<Error>,
    /// Whether the request is a poll of an open stream, which repeats every few seconds. Polls are not
    /// logged.
    pub is_poll: bool,
    /// As in [`crate::operation::Reply`].
    pub indexing_continues: bool,
}

/// The result of a method: a JSON object.
pub struct Outcome {
    pub json: String,
    /// Whether clients may cache the result, for a time that the newest revision specifies.
    pub is_list: bool,
    /// Whether the result requests input and is not complete.
    pub is_question: bool,
    /// As in [`McpAnswer`].
    pub session: Option<String>,
    pub indexing_continues: bool,
}

impl Outcome {
    pub fn new(result: &impl Serialize) -> Result<Self, RpcError> {
        Ok(Self {
            json: json::encode(result)?,
            is_list: false,
            is_question: false,
            session: None,
            indexing_continues: false,
        })
    }

    pub fn list(result: &impl Serialize) -> Result<Self, RpcError> {
        Ok(Self {
            is_list: true,
            ..Self::new(result)?
        })
    }
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Json,
    /// An event stream with one event.
    Events,
}

impl Form {
    pub fn answer(self, status: u16, json: String) -> McpAnswer {
        let (content_type, body) = match self {
            Form::Json => ("application/json", json),
            Form::Events => ("text/event-stream", event_of(&json)),
        };
        McpAnswer {
            status,
            content_type,
            body: body.into(),
            session: None,
            failure: None,
            is_poll: false,
            indexing_continues: false,
        }
    }
}
