//! Why a call failed.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::{Code, Object, read_json};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The agent refused. Nothing of the call was written.
    Refused(Box<Refusal>),
    /// The connection failed, or something other than a Session Agent answered: `status` is of its
    /// answer. It is unknown whether the operation ran.
    Unreached {
        operation: String,
        message: String,
        status: Option<u16>,
    },
    /// The operation ran, but its answer has a format that this crate doesn't know.
    Unreadable { operation: String, message: String },
    /// Nothing was sent: a name can't be in a URL, or an input can't be JSON.
    Invalid { message: String },
}

/// An agent's refusal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// Stable. Programs may rely on it.
    pub code: Code,
    /// A sentence for people, with advice.
    pub message: String,
    /// The field, the id or the number at fault, where there is one.
    pub details: Object,
    /// The status of the HTTP answer.
    pub status: u16,
    /// The operation that was called.
    pub operation: String,
}

impl Refusal {
    /// The field at fault, with `invalid_request`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.details.get("field")?.as_str()
    }

    /// The seconds after which to retry, with `rate_limited`.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.details.get("retryAfter")?.as_u64()
    }
}

impl Error {
    /// The agent's refusal, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The code of the agent's refusal, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<&Code> {
        self.refusal().map(|refusal| &refusal.code)
    }

    /// Whether the agent refused with this code.
    #[must_use]
    pub fn is(&self, code: &Code) -> bool {
        self.code() == Some(code)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
        }
    }

    /// The connection failed.
    pub(crate) fn lost(operation: &str, why: &str) -> Self {
        Self::Unreached {
            operation: operation.to_owned(),
            message: format!("`{operation}` got no answer: {why}"),
            status: None,
        }
    }

    pub(crate) fn unreadable(operation: &str, why: impl fmt::Display) -> Self {
        Self::Unreadable {
            operation: operation.to_owned(),
            message: format!("the answer of `{operation}` has an unexpected shape: {why}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unreached { message, .. }
            | Self::Unreadable { message, .. }
            | Self::Invalid { message } => f.write_str(message),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Error {}

#[derive(Deserialize)]
struct Refused {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: Code,
    message: String,
    #[serde(default)]
    details: Value,
}

/// The most characters of a foreign answer in an error's message.
const SHOWN_CHARACTERS: usize = 200;

/// The error for an answer with a failure status.
pub fn of_answer(operation: &str, status: u16, text: &str) -> Error {
    match refusal(text) {
        Some(ErrorBody {
            code,
            message,
            details,
        }) => Error::Refused(Box::new(Refusal {
            code,
            message,
            details: object(details),
            status,
            operation: operation.to_owned(),
        })),
        None => Error::Unreached {
            operation: operation.to_owned(),
            message: format!(
                "`{operation}` was answered with status {status}, but not by a Session Agent: {}",
                shown(text)
            ),
            status: Some(status),
        },
    }
}

/// The error in the last line of a file whose export failed.
pub fn of_last_line(operation: &str, error: &Value) -> Error {
    // The file began with a good status.
    let body = serde_json::json!({ "error": error }).to_string();
    of_answer(operation, 200, &body)
}

/// The error for a redirect. It is not followed: neither the token nor the input may be sent to its
/// target.
pub fn of_redirect(operation: &str, status: u16, location: Option<&str>) -> Error {
    let to = location
        .and_then(origin)
        .map(|origin| format!(" to {origin}"));
    Error::Unreached {
        operation: operation.to_owned(),
        message: format!(
            "`{operation}` was answered with a redirect{}, which is not followed, because the token and \
             the input would be sent there",
            to.unwrap_or_default()
        ),
        status: Some(status),
    }
}

/// The origin of a URL, whose rest may contain a secret.
fn origin(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}"))
}

fn refusal(text: &str) -> Option<ErrorBody> {
    read_json::<Refused>(text.as_bytes())
        .ok()
        .map(|refused| refused.error)
}

fn object(details: Value) -> Object {
    match details {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    if start.is_empty() {
        "(nothing)".to_owned()
    } else {
        start
    }
}
