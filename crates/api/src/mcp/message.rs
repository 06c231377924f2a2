//! JSON-RPC: the contents of a body and of an error.

use serde::Deserialize;
use serde_json::Value;

use base::error::{BODY, Code, Error};
use base::json::{self, JsonObject, RawValue, Tree, json, nullable};
use chat::tools::mcp::wire::is_request_id;

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
pub const INVALID_PARAMS: i64 = -32_602;
pub const INTERNAL_ERROR: i64 = -32_603;
/// An error that the protocol does not define: `data.code` is the contract's.
const REFUSED: i64 = -32_000;

/// A message that a client sent.
pub enum RpcMessage {
    Request(Box<Request>),
    /// The answer to one of our questions: its id as JSON, and its result if it has one.
    Answer(String, Option<Box<RawValue>>),
    /// A message that requires no answer.
    Notification,
}

/// A request, and its method's parameters.
pub struct Request {
    /// The id as JSON text.
    pub id: String,
    pub method: String,
    params: Params,
}

/// The parameters that the methods here know. Others are ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    name: Tree,
    uri: Tree,
    cursor: Tree,
    protocol_version: Tree,
    level: Tree,
    capabilities: Tree,
    #[serde(rename = "ref")]
    reference: Tree,
    argument: Tree,
    context: Tree,
    input_responses: Tree,
    request_state: Tree,
    stream: Tree,
    resources: Tree,
    notifications: Tree,
    /// Stored as text, as the tool receives it.
    arguments: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Tree,
}

/// Why a request is rejected.
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
    /// The HTTP status of an error that concerns the whole request.
    pub status: Option<u16>,
    /// The error that must be logged.
    pub failure: Option<Error>,
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "nullable")]
    id: Option<Option<Box<RawValue>>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl RpcMessage {
    pub fn parse(body: &[u8]) -> Result<Self, RpcError> {
        if body.trim_ascii_start().starts_with(b"[") {
            return Err(RpcError::request(
                "Batches are not supported: send each message in its own request.",
            ));
        }
        let envelope: Envelope = json::parse(body).map_err(|error| {
            let code = match error.field.as_deref() {
                Some(BODY) => PARSE_ERROR,
                _ => INVALID_REQUEST,
            };
            RpcError::new(code, error.into_message())
        })?;
        if envelope
            .jsonrpc
            .is_none_or(|version| version.get() != "\"2.0\"")
        {
            return Err(RpcError::request("`jsonrpc` must be \"2.0\"."));
        }
        let Some(method) = envelope.method else {
            let id = envelope.id.flatten();
            return match (id, envelope.result, envelope.error) {
                (_, None, None) => Err(RpcError::request("`method` is missing.")),
                (Some(id), result, _) => Ok(Self::Answer(id.get().to_owned(), result)),
                (None, ..) => Ok(Self::Notification),
            };
        };
        let Some(id) = envelope.id else {
            return Ok(Self::Notification);
        };
        let id = id
            .map(|id| id.get().to_owned())
            .filter(|id| is_request_id(id));
        let id = id.ok_or_else(|| RpcError::request("`id` must be a string or a whole number."))?;
        let params = match envelope.params {
            None => Params::default(),
            Some(params) if params.get().starts_with('{') => json::decode(params.get())
                .map_err(|_| RpcError::params("params", "`params` can't be read."))?,
            Some(_) => return Err(RpcError::params("params", "`params` must be an object.")),
        };
        Ok(Self::Request(Box::new(Request { id, method, params })))
    }
}

impl Request {
    /// A text among the parameters; an error if it is missing.
    pub fn text(&self, name: &str) -> Result<&str, RpcError> {
        self.find_text(name)?
            .ok_or_else(|| RpcError::params(name, format!("`{name}` is missing.")))
    }

    pub fn find_text(&self, name: &str) -> Result<Option<&str>, RpcError> {
        let value = match name {
            "name" => &self.params.name.0,
            "uri" => &self.params.uri.0,
            "cursor" => &self.params.cursor.0,
            "protocolVersion" => &self.params.protocol_version.0,
            "level" => &self.params.level.0,
            "requestState" => &self.params.request_state.0,
            _ => &Value::Null,
        };
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            _ => Err(RpcError::params(
                name,
                format!("`{name}` must be a string."),
            )),
        }
    }

    /// The object `arguments`, empty if it is left out.
    pub fn arguments(&self) -> Result<JsonObject, RpcError> {
        let given = self.params.arguments.as_ref();
        json::decode(given.map_or("{}", |given| given.get()))
            .map_err(|_| RpcError::params("arguments", "`arguments` must be an object."))
    }

    /// The capabilities that `initialize` names.
    pub fn capabilities(&self) -> &Value {
        &self.params.capabilities.0
    }

    /// The reference, the argument and the context of `completion/complete`.
    pub fn completion(&self) -> (&Value, &Value, &Value) {
        let Params {
            reference,
            argument,
            context,
            ..
        } = &self.params;
        (&reference.0, &argument.0, &context.0)
    }

    /// A stream's name, its state, and the notifications that its client wants.
    pub fn polled(&self) -> (&Value, &Value, &Value) {
        let Params {
            stream,
            resources,
            notifications,
            ..
        } = &self.params;
        (&stream.0, &resources.0, &notifications.0)
    }

    /// The client's answers to the questions of an earlier result.
    pub fn input_responses(&self) -> &Value {
        &self.params.input_responses.0
    }

    /// The client's metadata about itself and its request.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.params.meta.0.get(name)
    }
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: None,
            failure: None,
        }
    }

    /// The message is not one of this protocol.
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub fn params(field: &str, message: impl Into<String>) -> Self {
        Self {
            data: Some(json!({"field": field})),
            ..Self::new(INVALID_PARAMS, message)
        }
    }
}

pub fn method_not_found(method: &str) -> RpcError {
    let method: String = method.chars().take(64).collect();
    RpcError::new(
        METHOD_NOT_FOUND,
        format!("There is no method `{method}` here."),
    )
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let code = match error.code {
            Code::InvalidRequest
            | Code::SessionNotFound
            | Code::MessageNotFound
            | Code::BlockNotFound
            | Code::SkillNotFound => INVALID_PARAMS,
            Code::StorageFailed | Code::CorruptRow => INTERNAL_ERROR,
            _ => REFUSED,
        };
        let mut data = error.details();
        data.insert("code".to_owned(), error.code.name().into());
        let status = error.code.status();
        Self {
            code,
            message: error.message.clone(),
            data: Some(Value::Object(data)),
            status: (matches!(status, 401 | 403 | 413 | 429) || status >= 500).then_some(status),
            failure: error.cause.is_some().then_some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &str) -> i64 {
        match RpcMessage::parse(body.as_bytes()) {
            Err(error) => error.code,
            Ok(_) => 0,
        }
    }

    #[test]
    fn a_message_is_one_json_rpc_object() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 0),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#,
                0,
            ),
            (r#"{"jsonrpc":"2.0","id":-1,"method":"ping","extra":1}"#, 0),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                0,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 0),
            (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, 0),
            ("{", PARSE_ERROR),
            ("nonsense", PARSE_ERROR),
            ("\u{feff}{}", PARSE_ERROR),
            ("", INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
            ("[]", INVALID_REQUEST),
            (
                r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"\ud800"}"#,
                INVALID_REQUEST,
            ),
        ] {
            assert_eq!(code(body), expected, "{body}");
        }
        let id = |bytes: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#,
                "i".repeat(bytes - 2)
            )
        };
        assert_eq!(code(&id(1_000)), 0);
        assert_eq!(code(&id(1_001)), INVALID_REQUEST);
    }

    #[test]
    fn an_error_has_the_contracts_code_and_logs_its_cause() {
        let error = RpcError::from(Error::storage("no such table: secrets"));
        assert_eq!((error.code, error.status), (INTERNAL_ERROR, Some(500)));
        assert!(!error.message.contains("secrets"));
        assert!(error.failure.is_some());
        let error = RpcError::from(Error::invalid("label", "No."));
        assert_eq!((error.code, error.status), (INVALID_PARAMS, None));
        assert_eq!(
            error.data,
            Some(json!({"field": "label", "code": "invalid_request"}))
        );
        let error = RpcError::from(Error::new(Code::Forbidden, "No."));
        assert_eq!((error.code, error.status), (REFUSED, Some(403)));
    }
}
