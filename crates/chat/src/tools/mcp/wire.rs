//! Parses JSON-RPC messages of a tool server strictly, one message at a time.

use serde::Deserialize;
use serde_json::Value;

use crate::tools::mcp::failure::{ServerFailure, ServerRefusal};
use crate::tools::mcp::listing::clean;
use base::json::{self, RawValue, Tree, nullable};

/// The longest id of a server's request that is answered, in bytes.
const MAX_ID_BYTES: usize = 1_000;

/// The most bytes that are shown of a server's error message.
const MAX_MESSAGE_BYTES: usize = 500;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A message of a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The result of our request.
    Result(Box<RawValue>),
    /// A request that the server sent, with its id as JSON.
    Request { id: String, method: String },
    /// The server's list of tools has changed.
    ListChanged,
    /// Anything else that expects no answer, such as progress.
    Notification,
}

#[derive(Deserialize)]
struct ServerEnvelope<'a> {
    jsonrpc: Option<String>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    id: Option<Option<&'a RawValue>>,
    method: Option<String>,
    result: Option<Box<RawValue>>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: Option<String>,
    #[serde(default)]
    data: Tree,
}

/// The most supported revisions that are read from an error.
const MAX_SUPPORTED: usize = 32;

/// The revisions that an error names as supported.
fn read_supported(data: &Value) -> Vec<String> {
    let named = data["supported"].as_array().into_iter().flatten();
    let named = named.filter_map(|revision| revision.as_str().map(str::to_owned));
    named.take(MAX_SUPPORTED).collect()
}

/// Parses a message of the server to which the request `id` was sent.
pub fn read_message(text: &str, id: i64) -> Result<ServerMessage, ServerFailure> {
    let invalid = |what| Err(ServerFailure::InvalidResponse(what));
    let Ok(envelope) = json::decode::<ServerEnvelope<'_>>(text) else {
        return invalid("returned something other than a JSON-RPC message");
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return invalid("returned something other than a JSON-RPC message");
    }
    let named = envelope.id.flatten().map(RawValue::get);
    if let Some(method) = envelope.method {
        return Ok(match named {
            Some(id) if is_request_id(id) => ServerMessage::Request {
                id: id.to_owned(),
                method,
            },
            None if method == LIST_CHANGED => ServerMessage::ListChanged,
            _ => ServerMessage::Notification,
        });
    }
    let is_ours = named == Some(id.to_string().as_str());
    match (envelope.result, envelope.error) {
        (Some(result), None) if is_ours => Ok(ServerMessage::Result(result)),
        (None, Some(error)) if is_ours || named.is_none() => {
            let message = error.message.unwrap_or_default();
            Err(ServerFailure::Refused(ServerRefusal {
                message: clean(message.trim(), MAX_MESSAGE_BYTES),
                names_no_request: named.is_none(),
                supported: read_supported(&error.data.0),
            }))
        }
        (Some(_), None) | (None, Some(_)) => invalid("answered a different request"),
        (Some(_), Some(_)) => invalid("returned both a result and an error"),
        (None, None) => invalid("returned neither a result nor an error"),
    }
}

/// Whether this JSON is a valid id of a server's request: a string or a whole number.
pub fn is_request_id(text: &str) -> bool {
    let is_number = || {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.len() <= MAX_ID_BYTES && (text.starts_with('"') || is_number())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        match read_message(text, 7) {
            Ok(message) => format!("{message:?}"),
            Err(failure) => failure.reason(),
        }
    }

    #[test]
    fn a_response_matches_the_request_or_names_the_defect() {
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#;
        assert!(
            matches!(read_message(result, 7), Ok(ServerMessage::Result(raw)) if raw.get() == r#"{"a":1}"#)
        );
        let request = r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#;
        assert!(
            matches!(read_message(request, 7), Ok(ServerMessage::Request { id, .. }) if id == "\"x\"")
        );
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
                "Notification",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                "ListChanged",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                "Notification",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"  No\u0007. "}}"#,
                "it refused: No.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"message":"No."}}"#,
                "it refused: No.",
            ),
            (
                r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
                "it answered a different request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
                "it answered a different request",
            ),
            (
                r#"{"jsonrpc":"2.0","result":{}}"#,
                "it answered a different request",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#,
                "it returned both a result and an error",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7}"#,
                "it returned neither a result nor an error",
            ),
            (
                r#"{"id":7,"result":{}}"#,
                "it returned something other than a JSON-RPC message",
            ),
            ("[]", "it returned something other than a JSON-RPC message"),
            (
                "<html>",
                "it returned something other than a JSON-RPC message",
            ),
        ] {
            assert_eq!(reason(text), expected, "{text}");
        }
        let long = "x".repeat(2_000);
        let refused = reason(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"error":{{"message":"{long}"}}}}"#
        ));
        assert!(refused.len() < 600, "{refused}");
    }
}
