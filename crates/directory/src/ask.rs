//! Calls to a part of the directory, from agents, the Worker and other parts.

use serde::de::DeserializeOwned;

use super::DirectoryCall;
use base::error::{Error, Result};
use base::json;
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, send_and_read,
};
use base::settings::Setting;
use memory::backends::agent::secret_header;

/// How long a call waits before it is sent, and how long its answer may then take.
pub const TIMEOUT_MS: i64 = 10_000;

/// The most bytes of a page of names: a thousand of the longest names.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// Calls the object of this name.
pub async fn ask<T: DeserializeOwned>(
    outbound: &dyn Outbound,
    part: &str,
    call: &DirectoryCall,
) -> Result<T> {
    let request = OutboundRequest {
        purpose: CallPurpose::Memory,
        endpoint: Endpoint::Directory {
            part: part.to_owned(),
        },
        headers: secret_header(outbound).into_iter().collect(),
        body: json::encode(call)?,
        limits: CallLimits {
            wait_ms: TIMEOUT_MS,
            silence_ms: TIMEOUT_MS,
            no_content_ms: None,
            total_ms: TIMEOUT_MS,
            max_bytes: MAX_ANSWER_BYTES,
        },
    };
    let sent = send_and_read(outbound, request).await;
    let answer = sent.map_err(|why| silent(&why))?;
    if answer.status != 200 {
        return Err(unavailable("it returned an error"));
    }
    json::decode_bytes(&answer.body).map_err(|_| unavailable("its answer is not from a directory"))
}

fn silent(why: &CallFailure) -> Error {
    match why {
        CallFailure::NotConfigured { binding } => CallFailure::not_configured(binding),
        why => unavailable(&why.reason()),
    }
}

fn unavailable(reason: &str) -> Error {
    Error::storage(reason).with_message(format!(
        "The directory of agents is unavailable: {reason}. Nothing was changed; try again."
    ))
}

/// Fails if this Worker has no directory.
pub fn check_bound(outbound: &dyn Outbound) -> Result<()> {
    let binding = Setting::Directory.name();
    if outbound.is_bound(binding) {
        Ok(())
    } else {
        Err(CallFailure::not_configured(binding))
    }
}
