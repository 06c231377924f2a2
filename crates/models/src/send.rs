//! Sends a request to a provider. Retries only if the provider is overloaded, a limited
//! number of times and after limited pauses.

use super::caller_fields::CallerFields;
use super::choice::Provider;
use super::decode::MAX_ANSWER_BYTES;
use super::http_error::{MAX_BODY_BYTES, ProviderError, read_problem, to_error};
use super::{anthropic, openai};
use base::error::{Code, Error, Result};
use base::outbound::{
    ByteChunks, CallFailure, CallLimits, CallPurpose, Endpoint, OWN_CLASS, Outbound,
    OutboundRequest, OutboundResponse,
};
use base::settings::Setting;

/// The time without data after which an answer is abandoned: longer than a provider takes
/// to start the answer to a long prompt.
const SILENCE_MS: i64 = 60_000;

/// The maximum time in which an answer may send only bytes without content: comments,
/// pings, empty events. Some servers send them while a request is queued for its model.
const NO_CONTENT_MS: i64 = 2 * 60_000;

/// The maximum time of one answer. It is enough for a page even at one character a second.
const MAX_ANSWER_MS: i64 = 30 * 60_000;

/// The maximum time that a request may be queued before it is sent.
const WAIT_MS: i64 = 5 * 60_000;

pub const LIMITS: CallLimits = CallLimits {
    wait_ms: WAIT_MS,
    silence_ms: SILENCE_MS,
    no_content_ms: Some(NO_CONTENT_MS),
    total_ms: MAX_ANSWER_MS,
    max_bytes: MAX_ANSWER_BYTES,
};

/// The limits of an answer that is not streamed: no data arrives while the model writes it.
/// The official clients wait as long.
pub const WHOLE_LIMITS: CallLimits = CallLimits {
    silence_ms: 10 * 60_000,
    no_content_ms: None,
    ..LIMITS
};

/// The maximum number of attempts, including the first.
const MAX_TRIES: u32 = 3;

/// The pause before the second attempt; it doubles with each: 0.5 s, 1 s.
const FIRST_PAUSE_MS: i64 = 500;

/// The maximum pause that a provider may request: a user is waiting, too.
const MAX_PAUSE_MS: i64 = 10_000;

/// The target of a request.
pub enum ModelEndpoint<'a> {
    /// The binding `AI`, with the model's name.
    Ai(&'a str),
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// The class that extends this one, with the path of its function.
    Own(&'static str),
}

/// The path for requesting an answer from a class's model.
pub const MODEL_PATH: &str = "model";

/// The path for requesting vectors from a class.
pub const VECTORS_PATH: &str = "embed";

/// The reason why there is no answer.
pub struct Refusal {
    pub error: Error,
    pub remedy: Remedy,
}

/// What can resolve a refusal.
#[derive(Clone, Copy, PartialEq)]
pub enum Remedy {
    /// Waiting may help.
    Wait,
    /// Deploying: the binding exists, but a local run can't serve it.
    Deploy,
    Nothing,
}

/// The endpoint of OpenAI or of a compatible server.
pub fn openai_endpoint<'a>(outbound: &dyn Outbound, path: &str) -> Result<ModelEndpoint<'a>> {
    let base_url = outbound.find_setting(Setting::OpenAiBaseUrl);
    let key = outbound.find_setting(Setting::OpenAiApiKey);
    if base_url.is_none() && key.is_none() {
        return Err(missing_setting(
            Setting::OpenAiApiKey,
            "OpenAI needs the secret `OPENAI_API_KEY`: `npx wrangler secret put OPENAI_API_KEY`. For another server, set `OPENAI_BASE_URL`.",
        ));
    }
    Ok(ModelEndpoint::Http {
        url: openai::endpoint(base_url.as_deref(), path),
        headers: openai::headers(key.as_deref()),
    })
}

pub fn anthropic_endpoint<'a>(
    outbound: &dyn Outbound,
    caller: Option<&CallerFields>,
) -> Result<ModelEndpoint<'a>> {
    let key = outbound.find_setting(Setting::AnthropicApiKey).ok_or_else(|| {
        missing_setting(
            Setting::AnthropicApiKey,
            "Anthropic needs the secret `ANTHROPIC_API_KEY`: `npx wrangler secret put ANTHROPIC_API_KEY`.",
        )
    })?;
    let base_url = outbound.find_setting(Setting::AnthropicBaseUrl);
    Ok(ModelEndpoint::Http {
        url: anthropic::url(base_url.as_deref()),
        headers: anthropic::headers(&key, caller.and_then(|caller| caller.beta.as_deref())),
    })
}

fn missing_setting(setting: Setting, sentence: &str) -> Error {
    Error::new(Code::NotConfigured, sentence).with("binding", setting.name())
}

/// Sends the request once. The returned answer has a status from 200 to 299.
pub async fn attempt<'a>(
    outbound: &'a dyn Outbound,
    provider: Provider,
    endpoint: &ModelEndpoint<'a>,
    body: &str,
    limits: CallLimits,
) -> Result<OutboundResponse<'a>, Refusal> {
    let sent = match endpoint {
        ModelEndpoint::Ai(model) => outbound.run_ai(model, body.to_owned(), limits),
        ModelEndpoint::Http { url, headers } => outbound.send(OutboundRequest {
            purpose: CallPurpose::Model,
            endpoint: Endpoint::Url(url.clone()),
            headers: headers.clone(),
            body: body.to_owned(),
            limits,
        }),
        ModelEndpoint::Own(path) => outbound.send(OutboundRequest {
            purpose: CallPurpose::Model,
            endpoint: Endpoint::Service {
                binding: OWN_CLASS.to_owned(),
                path: (*path).to_owned(),
            },
            headers: Vec::new(),
            body: body.to_owned(),
            limits,
        }),
    };
    let mut answer = sent
        .await
        .map_err(|failure| unanswered(provider, &failure))?;
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    let head = read_head(answer.body.as_mut()).await;
    let problem = read_problem(answer.status, &head);
    Err(Refusal {
        error: to_error(provider, answer.status, &problem, answer.retry_after),
        remedy: if problem.is_overload && !problem.is_exhausted {
            Remedy::Wait
        } else {
            Remedy::Nothing
        },
    })
}

/// The refusal for an answer that did not arrive or was interrupted.
pub fn unanswered(provider: Provider, failure: &CallFailure) -> Refusal {
    let remedy = match failure {
        CallFailure::RemoteOnly { .. } => Remedy::Deploy,
        _ => Remedy::Nothing,
    };
    let error = match failure {
        CallFailure::NotConfigured { binding } => CallFailure::not_configured(binding),
        CallFailure::Overloaded => Error::new(
            Code::RateLimited,
            "Too many calls of this agent are in progress. Try again when some have ended.",
        )
        .with_retry_after(5),
        CallFailure::RemoteOnly { .. } => missing_setting(
            Setting::Ai,
            "Workers AI is not available in a local run. Deploy, or set `MODEL` to `demo` or to \
             another provider's model.",
        ),
        _ => Error::new(
            Code::ModelFailed,
            format!("{} did not answer: {}.", provider.title(), failure.reason()),
        )
        .with("provider", provider.name())
        .with_cause(match failure {
            CallFailure::Unreachable { cause } => Some(cause.clone()),
            _ => None,
        }),
    };
    Refusal { error, remedy }
}

/// The refusal for an answer with a success status whose body reports an overload.
pub fn overloaded(provider: Provider) -> Refusal {
    let problem = ProviderError {
        is_overload: true,
        ..ProviderError::default()
    };
    Refusal {
        error: to_error(provider, 200, &problem, None),
        remedy: Remedy::Wait,
    }
}

async fn read_head(body: &mut dyn ByteChunks) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_BODY_BYTES {
        match body.next().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            // The status is sufficient.
            Ok(None) | Err(_) => break,
        }
    }
    bytes.truncate(MAX_BODY_BYTES);
    bytes
}

/// Counts the attempts of a request.
#[derive(Default)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    /// Waits if another attempt may succeed; else returns the error.
    pub async fn wait(&mut self, outbound: &dyn Outbound, refusal: Refusal) -> Result<()> {
        self.tries += 1;
        let retry_after_s = refusal.error.retry_after_s;
        let retry_after_ms = retry_after_s.and_then(|seconds| seconds.checked_mul(1000));
        let pause_ms = retry_after_ms.unwrap_or(FIRST_PAUSE_MS << (self.tries - 1));
        if refusal.remedy != Remedy::Wait || self.tries >= MAX_TRIES || pause_ms > MAX_PAUSE_MS {
            return Err(refusal.error);
        }
        outbound.sleep(pause_ms.max(0)).await;
        Ok(())
    }
}

/// Sends the request until there is an answer or another attempt can't succeed.
pub async fn send<'a>(
    outbound: &'a dyn Outbound,
    provider: Provider,
    endpoint: &ModelEndpoint<'a>,
    body: &str,
) -> Result<OutboundResponse<'a>> {
    let mut backoff = Backoff::default();
    loop {
        match attempt(outbound, provider, endpoint, body, LIMITS).await {
            Ok(answer) => return Ok(answer),
            Err(refusal) => backoff.wait(outbound, refusal).await?,
        }
    }
}
