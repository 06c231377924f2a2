//! Backends of memory blocks outside this object. Every call to a backend has limits. A
//! failed call returns one of two errors: an API error from the backend itself, or an error
//! that explains why the backend is unavailable.

pub mod agent;
pub mod bucket;
pub mod receipt;
pub mod service;

use serde_json::Value;

use super::Memory;
use base::error::{Code, Error, ErrorKind, Result};
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, OutboundRequest, WriteLock, in_time,
    send_and_read,
};
use store::clearing::MINUTE_MS;

/// How long a call may wait before it is sent, and then for its answer.
pub const TIMEOUT_MS: i64 = 10_000;

/// The most bytes of an answer, and of an object in the bucket.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

pub const LIMITS: CallLimits = CallLimits {
    wait_ms: TIMEOUT_MS,
    silence_ms: TIMEOUT_MS,
    no_content_ms: None,
    total_ms: TIMEOUT_MS,
    max_bytes: MAX_ANSWER_BYTES,
};

/// A purge answers only after database pages were cleared, which may take a minute
/// (`store/clearing.rs`).
const PURGE_MS: i64 = TIMEOUT_MS + MINUTE_MS;

/// The call limits for this input.
fn limits_of(input: &Value) -> CallLimits {
    match input.get("purge") {
        Some(Value::Bool(true)) => CallLimits {
            silence_ms: PURGE_MS,
            total_ms: PURGE_MS,
            ..LIMITS
        },
        _ => LIMITS,
    }
}

/// Marks an error as a backend failure: a prompt shows the reason instead of the block,
/// and the caller finds it in the error's details.
fn mark_unavailable(error: Error, reason: String) -> Error {
    error
        .with("unavailable", reason.as_str())
        .of_kind(ErrorKind::BackendUnavailable(reason))
}

/// The error for a backend without a usable answer. `who` names the backend.
pub fn unavailable(who: &str, reason: &str) -> Error {
    let error = Error::storage(reason).with_message(format!(
        "{who} is unavailable: {reason}. Nothing is lost; try again later."
    ));
    mark_unavailable(error, format!("{who}: {reason}"))
}

/// The error for a block whose source is invalid for this agent.
pub fn source_error(reason: &str) -> Error {
    let error = Error::invalid(
        "source",
        format!(
            "This block's `source` is not valid: {reason}. Define the block again, or use an agent \
             with another name."
        ),
    );
    mark_unavailable(error, reason.to_owned())
}

/// Why the block's backend is unavailable, if that is the error's kind.
pub fn find_unavailable(error: &Error) -> Option<&str> {
    match &error.kind {
        Some(ErrorKind::BackendUnavailable(reason)) => Some(reason),
        _ => None,
    }
}

/// Like [`find_unavailable`], but a backend that isn't configured counts as unavailable.
pub fn unavailable_reason(error: &Error) -> Option<String> {
    match find_unavailable(error) {
        Some(reason) => Some(reason.to_owned()),
        None if error.code == Code::NotConfigured => Some(error.message.clone()),
        None => None,
    }
}

fn failed(who: &str, failure: &CallFailure) -> Error {
    match failure {
        CallFailure::NotConfigured { binding } => CallFailure::not_configured(binding),
        failure => unavailable(who, &failure.reason()),
    }
}

/// Starts a write to the text of this name. No other request of this object writes it until the
/// lock is dropped. `who` names the backend in errors.
pub async fn begin_write<'a>(
    memory: &Memory<'a>,
    who: &str,
    text_name: &str,
    bytes: usize,
) -> Result<WriteLock<'a>> {
    let outbound = memory.outbound;
    let entering = outbound.writers().enter(text_name, bytes);
    let entered = in_time(outbound.sleep(TIMEOUT_MS), entering).await;
    let entered = entered.unwrap_or(Err(CallFailure::Overloaded));
    entered.map_err(|failure| failed(who, &failure))
}

/// The error for a write without an answer: the backend may have done the write.
fn outcome_unknown(error: Error) -> Error {
    match find_unavailable(&error) {
        Some(reason) => {
            let message = format!(
                "{reason}. The text may or may not have been written: read it before you write it \
                 again."
            );
            error.with_message(message)
        }
        None => error,
    }
}

/// A backend's answer: a status, and a body that is UTF-8 text of limited length.
struct BackendResponse {
    status: u16,
    body: String,
}

/// Sends a request to a backend and reads the whole answer.
async fn ask(
    memory: &Memory<'_>,
    who: &str,
    endpoint: Endpoint,
    headers: Vec<(String, String)>,
    body: String,
    limits: CallLimits,
) -> Result<BackendResponse> {
    let call = OutboundRequest {
        purpose: CallPurpose::Memory,
        endpoint,
        headers,
        body,
        limits,
    };
    let sent = send_and_read(memory.outbound, call).await;
    let answer = sent.map_err(|failure| failed(who, &failure))?;
    let body = String::from_utf8(answer.body);
    Ok(BackendResponse {
        status: answer.status,
        body: body.map_err(|_| unavailable(who, "its answer is not UTF-8 text"))?,
    })
}
