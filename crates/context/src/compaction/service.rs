//! A service binding that writes summaries instead of a model, in any language. It receives `POST
//! summarize` with `{agent, prompt, maxTokens}` and returns `{summary}`. `prompt` contains the
//! instructions and the part of the conversation.

use serde::{Deserialize, Serialize};

use base::error::{Code, Error, Result};
use base::json;
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, OutboundRequest, send_and_read,
};
use memory::Memory;

/// The path of the request.
const PATH: &str = "summarize";

/// As for a model, which the service replaces. The answer arrives whole, so the service may be
/// silent for as long as it may take.
const LIMITS: CallLimits = CallLimits {
    wait_ms: 5 * 60_000,
    silence_ms: 2 * 60_000,
    no_content_ms: None,
    total_ms: 5 * 60_000,
    // Many times the length of a summary.
    max_bytes: 256 << 10,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryRequest<'a> {
    agent: &'a str,
    prompt: &'a str,
    max_tokens: i64,
}

#[derive(Deserialize)]
struct SummaryAnswer {
    summary: String,
}

/// The service's summary. An error describes what happened, without the content of the answer.
pub async fn ask(
    memory: &Memory<'_>,
    binding: &str,
    prompt: &str,
    max_tokens: i64,
) -> Result<String> {
    let failed = |what: &str| {
        let sentence = format!("The service `{binding}` returned no summary: {what}.");
        Error::new(Code::ModelFailed, sentence).with("binding", binding)
    };
    if !memory.outbound.is_bound(binding) {
        return Err(CallFailure::not_configured(binding));
    }
    let call = OutboundRequest {
        purpose: CallPurpose::Model,
        endpoint: Endpoint::Service {
            binding: binding.to_owned(),
            path: PATH.to_owned(),
        },
        headers: Vec::new(),
        body: json::encode(&SummaryRequest {
            agent: memory.agent,
            prompt,
            max_tokens,
        })?,
        limits: LIMITS,
    };
    let sent = send_and_read(memory.outbound, call).await;
    let answer = sent.map_err(|failure| failed(&failure.reason()))?;
    if !(200..300).contains(&answer.status) {
        return Err(failed(&format!("it returned status {}", answer.status)));
    }
    let answered: SummaryAnswer = json::parse(&answer.body)
        .map_err(|_| failed("its answer is not a JSON object with a text `summary`"))?;
    Ok(answered.summary)
}
