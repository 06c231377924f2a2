//! A service binding that writes summaries in place of a model, in any language. It is asked
//! by `POST summarize` with `{agent, prompt, maxTokens}` and answers `{summary}`. `prompt` says
//! what is wanted, and holds the part of the conversation.

use serde::{Deserialize, Serialize};

use base::error::{Code, Error, Result};
use base::json;
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, OutboundRequest, send_and_read,
};
use memory::Memory;

/// The path at which the service is asked.
const PATH: &str = "summarize";

/// As for a model, whose place the service takes. An answer comes whole, so it may be silent
/// for as long as it may take.
const LIMITS: CallLimits = CallLimits {
    wait_ms: 5 * 60_000,
    silence_ms: 2 * 60_000,
    mute_ms: None,
    total_ms: 5 * 60_000,
    // Many times what a summary may have.
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

/// The service's summary. An error says what happened, and nothing of the answer.
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
        place: Endpoint::Service {
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
