//! Homes outside this object. Each is asked within bounds, and what is wrong
//! with its answer becomes one of two things: an error of the contract that the
//! home itself gave, or that it is unavailable, and why.

pub mod agent;
pub mod bucket;
pub mod service;

use super::Memory;
use crate::base::error::{Code, Error, Result};
use crate::base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, OutboundRequest, OutboundResponse, WriteLock,
    in_time,
};

/// How long a call waits until it may leave, and how long its answer may then take.
pub const PATIENCE_MS: i64 = 10_000;

/// Bytes of an answer, and of an object of the bucket.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

pub const LIMITS: CallLimits = CallLimits {
    wait_ms: PATIENCE_MS,
    silence_ms: PATIENCE_MS,
    total_ms: Some(PATIENCE_MS),
    max_bytes: MAX_ANSWER_BYTES,
};

const DETAIL: &str = "unavailable";

/// A home that gave no usable answer. `who` begins the sentence, `reason` ends it.
pub fn unavailable(who: &str, reason: &str) -> Error {
    Error {
        message: format!(
            "{who} is unavailable: {reason}. Nothing is lost; try again when it is back."
        ),
        ..Error::storage(reason)
    }
    .with(DETAIL, format!("{who}: {reason}"))
}

/// Why the block's home gave nothing, if that is what went wrong.
pub fn find_unavailable(error: &Error) -> Option<&str> {
    error.details.get(DETAIL)?.as_str()
}

/// As [`find_unavailable`]; a home that isn't configured is away, too.
pub fn why_away(error: &Error) -> Option<String> {
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

/// Begins a write of this place: nobody else of this object writes there until the
/// guard is dropped. `who` keeps the text.
pub async fn begin_write<'a>(
    memory: &Memory<'a>,
    who: &str,
    place: &str,
    bytes: usize,
) -> Result<WriteLock<'a>> {
    let outbound = memory.outbound;
    let entered = in_time(
        outbound,
        PATIENCE_MS,
        outbound.writers().enter(place, bytes),
    )
    .await;
    let entered = entered.unwrap_or(Err(CallFailure::Crowded));
    entered.map_err(|failure| failed(who, &failure))
}

/// A write whose end nobody saw: it may have been done.
fn unsure(error: Error) -> Error {
    match find_unavailable(&error) {
        Some(reason) => Error {
            message: format!(
                "{reason}. Whether the text was written is not known: read it before you write it again."
            ),
            ..error
        },
        None => error,
    }
}

/// What a home answered: a status, and a body that is text within bounds.
struct HomeResponse {
    status: u16,
    body: String,
}

/// Asks a home and hears it out.
async fn ask(
    memory: &Memory<'_>,
    who: &str,
    place: Endpoint,
    headers: Vec<(String, String)>,
    body: String,
) -> Result<HomeResponse> {
    let call = OutboundRequest {
        purpose: CallPurpose::Memory,
        place,
        headers,
        body,
        limits: LIMITS,
    };
    let answer = memory
        .outbound
        .send(call)
        .await
        .map_err(|failure| failed(who, &failure))?;
    let status = answer.status;
    let bytes = hear(answer)
        .await
        .map_err(|failure| failed(who, &failure))?;
    let body =
        String::from_utf8(bytes).map_err(|_| unavailable(who, "its answer is not UTF-8 text"))?;
    Ok(HomeResponse { status, body })
}

/// The body, chunk by chunk.
async fn hear(mut answer: OutboundResponse<'_>) -> Result<Vec<u8>, CallFailure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.body.next().await? {
        if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(CallFailure::TooLarge {
                max_bytes: MAX_ANSWER_BYTES,
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
