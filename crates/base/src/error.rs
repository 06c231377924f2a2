//! The error type of the API contract: a stable code, a sentence for people, and details
//! that help to fix the error.
//!
//! No error exposes SQL, a payload or a secret. The engine's own message is stored in
//! `cause`. It is logged once, where the error leaves the object, and is never serialized.

use std::ops::{Deref, DerefMut};

use serde_json::{Map, Value};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A storage engine's failure, recognized by SQLite's message, which every engine passes
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFailure {
    /// The database has reached its limit.
    Full,
    /// A text would exceed SQLite's maximum length.
    TextTooLong,
    /// SQLite had to parse JSON, and a row's text is not JSON.
    DamagedJson,
    Other,
}

impl StorageFailure {
    fn of(cause: &str) -> Self {
        let known = [
            ("database or disk is full", Self::Full),
            ("string or blob too big", Self::TextTooLong),
            ("malformed JSON", Self::DamagedJson),
        ];
        let failure = known.into_iter().find(|(words, _)| cause.contains(words));
        failure.map_or(Self::Other, |(_, failure)| failure)
    }
}

/// The contract's error codes (§4). Adding a code extends the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    BlockReadOnly,
    UnknownOperation,
    SessionNotFound,
    MessageNotFound,
    BlockNotFound,
    SkillNotFound,
    MethodNotAllowed,
    LeafMoved,
    VersionConflict,
    AlreadyExists,
    TurnInProgress,
    PayloadTooLarge,
    UnsupportedMediaType,
    StepLimitReached,
    RateLimited,
    BlockOverBudget,
    NotConfigured,
    ModelFailed,
    ModelOverloaded,
    StorageFailed,
    CorruptRow,
}

impl Code {
    pub const ALL: &[Code] = &[
        Code::InvalidRequest,
        Code::Unauthorized,
        Code::Forbidden,
        Code::BlockReadOnly,
        Code::UnknownOperation,
        Code::SessionNotFound,
        Code::MessageNotFound,
        Code::BlockNotFound,
        Code::SkillNotFound,
        Code::MethodNotAllowed,
        Code::LeafMoved,
        Code::VersionConflict,
        Code::AlreadyExists,
        Code::TurnInProgress,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
        Code::StepLimitReached,
        Code::RateLimited,
        Code::BlockOverBudget,
        Code::NotConfigured,
        Code::ModelFailed,
        Code::ModelOverloaded,
        Code::StorageFailed,
        Code::CorruptRow,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Code::InvalidRequest => "invalid_request",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::BlockReadOnly => "block_read_only",
            Code::UnknownOperation => "unknown_operation",
            Code::SessionNotFound => "session_not_found",
            Code::MessageNotFound => "message_not_found",
            Code::BlockNotFound => "block_not_found",
            Code::SkillNotFound => "skill_not_found",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::LeafMoved => "leaf_moved",
            Code::VersionConflict => "version_conflict",
            Code::AlreadyExists => "already_exists",
            Code::TurnInProgress => "turn_in_progress",
            Code::PayloadTooLarge => "payload_too_large",
            Code::UnsupportedMediaType => "unsupported_media_type",
            Code::StepLimitReached => "step_limit_reached",
            Code::RateLimited => "rate_limited",
            Code::BlockOverBudget => "block_over_budget",
            Code::NotConfigured => "not_configured",
            Code::ModelFailed => "model_failed",
            Code::ModelOverloaded => "model_overloaded",
            Code::StorageFailed => "storage_failed",
            Code::CorruptRow => "corrupt_row",
        }
    }

    /// The code of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }

    pub fn status(self) -> u16 {
        match self {
            Code::InvalidRequest => 400,
            Code::Unauthorized => 401,
            Code::Forbidden | Code::BlockReadOnly => 403,
            Code::UnknownOperation
            | Code::SessionNotFound
            | Code::MessageNotFound
            | Code::BlockNotFound
            | Code::SkillNotFound => 404,
            Code::MethodNotAllowed => 405,
            Code::LeafMoved
            | Code::VersionConflict
            | Code::AlreadyExists
            | Code::TurnInProgress => 409,
            Code::PayloadTooLarge => 413,
            Code::UnsupportedMediaType => 415,
            Code::BlockOverBudget | Code::StepLimitReached => 422,
            Code::RateLimited => 429,
            Code::StorageFailed | Code::CorruptRow => 500,
            Code::NotConfigured => 501,
            Code::ModelFailed => 502,
            Code::ModelOverloaded => 503,
        }
    }
}

/// The `field` of an error that concerns the whole body.
pub const BODY: &str = "body";

const FIELD: &str = "field";
const LINE: &str = "line";
const RETRY_AFTER: &str = "retryAfter";

/// Boxed to the size of one pointer, because each `?` copies the error.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<ErrorParts>);

#[derive(Clone, Debug, PartialEq)]
pub struct ErrorParts {
    pub code: Code,
    pub message: String,
    /// The request field that is wrong. [`BODY`]: no single field.
    pub field: Option<String>,
    /// The line of the file that is wrong.
    pub line: Option<u64>,
    /// After how many seconds a retry may succeed.
    pub retry_after_s: Option<i64>,
    /// Other details that help to fix the error, shown only to the caller.
    others: Map<String, Value>,
    /// The cause of the error, only for the log.
    pub cause: Option<String>,
    /// The kind, by which calling code decides how to handle the error. Not shown to the
    /// caller.
    pub kind: Option<ErrorKind>,
}

/// The kind of an error, in addition to its code.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorKind {
    Storage(StorageFailure),
    /// A model refused a request because of its length in tokens. The numbers are those
    /// that its message contained.
    RefusedForLength {
        sent: Option<i64>,
        most: Option<i64>,
        window: Option<i64>,
    },
    /// A model's provider answered with an error.
    RefusedByModel,
    /// A limit of the caller's token, not of the agent, refused a turn or a call.
    TokenLimited,
    /// The budget of the agent's own work refused a call.
    BudgetLimited,
    /// The path exists, but only allows these methods.
    Allows(String),
    /// A block's backend returned no usable answer, or none is configured. The text is the reason.
    BackendUnavailable(String),
}

impl Deref for Error {
    type Target = ErrorParts;

    fn deref(&self) -> &ErrorParts {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorParts {
        &mut self.0
    }
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, message.into())
    }

    #[inline(never)]
    fn of(code: Code, message: String) -> Self {
        Self(Box::new(ErrorParts {
            code,
            message,
            field: None,
            line: None,
            retry_after_s: None,
            others: Map::new(),
            cause: None,
            kind: None,
        }))
    }

    pub fn with(self, key: &str, value: impl Into<Value>) -> Self {
        self.with_detail(key, value.into())
    }

    #[inline(never)]
    fn with_detail(mut self, key: &str, value: Value) -> Self {
        self.others.insert(key.to_owned(), value);
        self
    }

    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub fn with_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    pub fn with_retry_after(mut self, seconds: i64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Sets the details of an error that was created elsewhere or earlier.
    pub fn with_details(mut self, details: Map<String, Value>) -> Self {
        for (name, value) in details {
            match value {
                Value::String(field) if name == FIELD => self.field = Some(field),
                Value::Number(line) if name == LINE && line.is_u64() => self.line = line.as_u64(),
                Value::Number(seconds) if name == RETRY_AFTER && seconds.is_i64() => {
                    self.retry_after_s = seconds.as_i64();
                }
                value => {
                    self.others.insert(name, value);
                }
            }
        }
        self
    }

    /// The details that help to fix the error, as the caller sees them.
    pub fn details(&self) -> Map<String, Value> {
        let mut details = self.others.clone();
        let mut add = |name: &str, value: Option<Value>| {
            value.and_then(|value| details.insert(name.to_owned(), value))
        };
        add(FIELD, self.field.as_deref().map(Value::from));
        add(LINE, self.line.map(Value::from));
        add(RETRY_AFTER, self.retry_after_s.map(Value::from));
        details
    }

    /// The same error with another message.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    pub fn into_message(self) -> String {
        self.0.message
    }

    pub fn with_cause(mut self, cause: Option<String>) -> Self {
        self.cause = cause;
        self
    }

    /// `field` is wrong; `message` explains how, and names a valid value.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message).with_field(field)
    }

    pub fn session_not_found(id: &str) -> Self {
        Self::new(
            Code::SessionNotFound,
            "This agent has no such session. Create it with `createSession`, or list the existing \
             ones with `listSessions`.",
        )
        .with("sessionId", id)
    }

    pub fn payload_too_large(what: &str, limit: usize, actual: usize) -> Self {
        Self::new(
            Code::PayloadTooLarge,
            format!("{what} is {actual} bytes; the limit is {limit}."),
        )
        .with("limit", limit)
        .with("actual", actual)
    }

    pub fn corrupt_row(id: &str, what: &str) -> Self {
        Self::new(
            Code::CorruptRow,
            format!(
                "The stored {what} of this row is damaged and can't be read. Other rows are not \
                 affected. To make the range readable again, delete this row by its id."
            ),
        )
        .with("id", id)
    }

    /// Which storage failure.
    pub fn storage_failure(&self) -> Option<StorageFailure> {
        match self.kind {
            Some(ErrorKind::Storage(failure)) => Some(failure),
            _ => None,
        }
    }

    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// `cause` is the engine's message. The caller only learns whether the storage is full,
    /// because then repeating the request does not help.
    pub fn storage(cause: impl Into<String>) -> Self {
        let cause = cause.into();
        let failure = StorageFailure::of(&cause);
        let message = match failure {
            StorageFailure::Full => {
                "The object's storage is full: the limit is 10 GB. This request wrote \
                 nothing. Reads still work. To free space, delete events, a few at a time."
            }
            _ => {
                "The object's storage failed. This request wrote nothing, so you can \
                 safely retry it."
            }
        };
        let mut error = Self::new(Code::StorageFailed, message).with_cause(Some(cause));
        error.kind = Some(ErrorKind::Storage(failure));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_carries_code_message_and_details() {
        let error = Error::invalid("limit", "`limit` must be at most 500.");
        assert_eq!(
            error.body(),
            r#"{"error":{"code":"invalid_request","details":{"field":"limit"},"message":"`limit` must be at most 500."}}"#
        );
    }

    #[test]
    fn error_details_round_trip() {
        let error = Error::invalid("limit", "It is wrong.")
            .with_line(7)
            .with_retry_after(5)
            .with("id", "e1");
        let details = r#"{"field":"limit","id":"e1","line":7,"retryAfter":5}"#;
        assert_eq!(Value::from(error.details()).to_string(), details);
        let parsed = Error::new(error.code, "It is wrong.").with_details(error.details());
        assert_eq!(parsed, error);
    }

    #[test]
    fn the_engines_error_text_is_not_exposed() {
        let body = Error::storage("UNIQUE constraint failed: cf_agents_events.id").body();
        assert!(!body.contains("UNIQUE") && !body.contains("cf_agents"));
    }

    #[test]
    fn each_storage_error_is_classified() {
        for (cause, failure) in [
            (
                "string or blob too big: SQLITE_TOOBIG",
                StorageFailure::TextTooLong,
            ),
            (
                "database or disk is full: SQLITE_FULL",
                StorageFailure::Full,
            ),
            ("malformed JSON: SQLITE_ERROR", StorageFailure::DamagedJson),
            ("disk I/O error", StorageFailure::Other),
        ] {
            assert_eq!(
                Error::storage(cause).storage_failure(),
                Some(failure),
                "{cause}"
            );
        }
        assert_eq!(Error::invalid("a", "b").storage_failure(), None);
    }

    #[test]
    fn every_code_has_a_unique_name() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
