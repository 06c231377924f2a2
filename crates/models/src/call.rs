//! Calls a model: the one module that sends a request and returns its answer in parts.
//!
//! An overloaded model is called again as long as no part of its answer has arrived. An answer that
//! has started is not requested again. A model that fails is an error. The demo replaces a model
//! only if nobody named one and a local run can't serve the default.

use std::collections::VecDeque;

use super::call_ids::CallIds;
use super::caller_fields::{CallerFields, ProviderApi};
use super::choice::{ModelChoice, ModelName, Provider, choose};
use super::decode::Decoder;
use super::http_error::to_error;
use super::send::{
    Backoff, LIMITS, ModelEndpoint, Remedy, WHOLE_LIMITS, anthropic_endpoint, attempt,
    openai_endpoint, overloaded, unanswered,
};
use super::{AnswerPart, ModelRequest, TokenUsage, demo, encode_request, openai, responses, send};
use base::error::{Code, Error, Result};
use base::outbound::{ByteChunks, Outbound, host_and_port};
use base::settings::Setting;

/// An answer that is arriving.
pub struct ModelStream<'a> {
    /// The model that answers: the chosen one, or the demo that replaces it.
    pub model: String,
    /// `None`: the demo.
    provider: Option<Provider>,
    /// The model that answers, once the provider has named it: often a dated version of `model`.
    pub answered_by: Option<String>,
    ready: VecDeque<AnswerPart>,
    /// `None`: every part is in `ready`.
    rest: Option<UnreadAnswer<'a>>,
}

struct UnreadAnswer<'a> {
    provider: Provider,
    body: Box<dyn ByteChunks + 'a>,
    decoder: Decoder,
}

/// The model that answers for an agent of this Worker.
pub fn choose_model(outbound: &dyn Outbound, agent_model: Option<&str>) -> Result<ModelChoice> {
    let setting = outbound.find_setting(Setting::Model);
    choose(
        agent_model,
        setting.as_deref(),
        outbound.is_bound(Setting::Ai.name()),
    )
}

/// Whether OpenAI's models are called through Responses for a caller who uses it: at OpenAI's own
/// address, or if the operator configured it.
pub fn has_responses(outbound: &dyn Outbound) -> Result<bool> {
    match outbound.find_setting(Setting::OpenAiApi).as_deref() {
        None | Some("") => Ok(openai::is_own_address(
            outbound.find_setting(Setting::OpenAiBaseUrl).as_deref(),
        )),
        Some("responses") => Ok(true),
        Some("chat-completions") => Ok(false),
        Some(_) => Err(Error::new(
            Code::NotConfigured,
            "`OPENAI_API` must be `responses` or `chat-completions`.",
        )
        .with("binding", Setting::OpenAiApi.name())),
    }
}

/// The host and the port of the server that serves a model, by the model's full name. `None`: the
/// model is behind a binding, in this Worker, or not configured.
pub fn find_server(outbound: &dyn Outbound, model: &str) -> Option<(String, i64)> {
    let name = ModelName::parse("model", model).ok()?;
    let (provider, _) = name.served()?;
    let endpoint = match provider {
        Provider::OpenAi => openai_endpoint(outbound, openai::CHAT_PATH).ok()?,
        Provider::Anthropic => anthropic_endpoint(outbound, None).ok()?,
        Provider::WorkersAi | Provider::Own => return None,
    };
    match endpoint {
        ModelEndpoint::Http { url, .. } => Some(host_and_port(&url)),
        ModelEndpoint::Ai(_) | ModelEndpoint::Own(_) => None,
    }
}

/// Sends the request. Returns when the first part has arrived.
pub async fn open<'a>(
    outbound: &'a dyn Outbound,
    choice: &'a ModelChoice,
    request: &ModelRequest<'_>,
    stream: bool,
) -> Result<ModelStream<'a>> {
    let Some((provider, model)) = choice.name.served() else {
        return Ok(ModelStream::of_demo(request));
    };
    let endpoint = match provider {
        Provider::WorkersAi => ModelEndpoint::Ai(model),
        Provider::OpenAi => openai_endpoint(outbound, openai_path(request))?,
        Provider::Anthropic => anthropic_endpoint(outbound, request.caller)?,
        Provider::Own => ModelEndpoint::Own(send::MODEL_PATH),
    };
    let body = encode_request(&choice.name, request, stream);
    let caller = request
        .caller
        .filter(|caller| caller.api.provider() == provider);
    let limits = match caller {
        Some(caller) if !caller.is_streamed => WHOLE_LIMITS,
        _ => LIMITS,
    };
    let mut backoff = Backoff::default();
    loop {
        let refusal = match attempt(outbound, provider, &endpoint, &body, limits).await {
            Ok(answer) => {
                let mut stream = ModelStream {
                    model: choice.name.to_string(),
                    provider: Some(provider),
                    answered_by: None,
                    ready: VecDeque::new(),
                    rest: Some(UnreadAnswer {
                        provider,
                        body: answer.body,
                        decoder: decoder(provider, request, caller),
                    }),
                };
                if !stream.begin().await? {
                    return Ok(stream);
                }
                overloaded(provider)
            }
            Err(refusal) if refusal.remedy == Remedy::Deploy && choice.is_default => {
                return Ok(ModelStream::of_demo(request));
            }
            Err(refusal) => refusal,
        };
        backoff.wait(outbound, refusal).await?;
    }
}

/// The path below OpenAI's base URL: that of the API that the caller uses.
fn openai_path(request: &ModelRequest<'_>) -> &'static str {
    match request.caller_of(ProviderApi::Responses) {
        Some(_) => responses::PATH,
        None => openai::CHAT_PATH,
    }
}

/// `caller`: the caller, if this is its provider.
fn decoder(
    provider: Provider,
    request: &ModelRequest<'_>,
    caller: Option<&CallerFields>,
) -> Decoder {
    let ids = CallIds::after(request.messages, request.earlier_calls);
    match caller.map(CallerFields::model_api) {
        Some(ProviderApi::Responses) => Decoder::of_responses(ids),
        model_api => Decoder::new(provider, ids, model_api.is_some()),
    }
}

/// The facts about a call whose answer is collected as a whole, known even if the answer fails.
#[derive(Default)]
pub struct CompletedCall {
    /// The tokens that the provider reports.
    pub usage: TokenUsage,
    /// The model that answered. `None`: none did.
    pub model: Option<String>,
}

/// The whole text of an answer. Fills `call` while the answer arrives.
pub async fn complete(
    outbound: &dyn Outbound,
    choice: &ModelChoice,
    request: &ModelRequest<'_>,
    call: &mut CompletedCall,
) -> Result<String> {
    // Streams here, too: a long answer that is not streamed looks like silence.
    let mut stream = open(outbound, choice, request, true).await?;
    call.model = Some(stream.model.clone());
    let mut text = String::new();
    while let Some(part) = stream.next().await? {
        match part {
            AnswerPart::Text(piece) => text.push_str(&piece),
            AnswerPart::Usage(usage) => call.usage = usage,
            AnswerPart::Failed(sentence) => return Err(Error::new(Code::ModelFailed, sentence)),
            _ => {}
        }
    }
    Ok(text)
}

impl<'a> ModelStream<'a> {
    fn of_demo(request: &ModelRequest<'_>) -> Self {
        Self {
            model: ModelName::Demo.to_string(),
            provider: None,
            answered_by: None,
            ready: demo::answer(request).into(),
            rest: None,
        }
    }

    /// Whether the answer arrives in the API that this caller uses.
    pub fn is_in_api_of(&self, caller: &CallerFields) -> bool {
        caller.api == caller.model_api() && self.provider == Some(caller.api.provider())
    }

    /// The next part. `None` follows the last part, which is [`AnswerPart::Finish`] or
    /// [`AnswerPart::Failed`]. An error means that the connection failed; nothing follows
    /// it.
    pub async fn next(&mut self) -> Result<Option<AnswerPart>> {
        while self.ready.is_empty() && self.rest.is_some() {
            self.receive().await?;
        }
        Ok(self.ready.pop_front())
    }

    /// Waits for the first part. Returns whether the provider reported an overload
    /// instead.
    async fn begin(&mut self) -> Result<bool> {
        loop {
            let is_overload = self.receive().await?;
            let is_empty = |part: &AnswerPart| {
                matches!(
                    part,
                    AnswerPart::Usage(_) | AnswerPart::Failed(_) | AnswerPart::Event(_)
                )
            };
            let is_event = |part: &AnswerPart| matches!(part, AnswerPart::Event(_));
            if is_overload && self.ready.iter().all(is_empty) {
                return Ok(true);
            }
            if !self.ready.iter().all(is_event) || self.rest.is_none() {
                return Ok(false);
            }
        }
    }

    /// Reads the next bytes. Returns whether the provider has reported an overload.
    async fn receive(&mut self) -> Result<bool> {
        let Some(rest) = &mut self.rest else {
            return Ok(false);
        };
        let parts = match rest.body.next().await {
            Ok(Some(bytes)) => rest.decoder.push(&bytes),
            Ok(None) => rest.decoder.end(),
            Err(failure) => {
                let error = unanswered(rest.provider, &failure).error;
                self.rest = None;
                return Err(error);
            }
        };
        if self.answered_by.is_none() {
            self.answered_by = rest.decoder.model().map(str::to_owned);
        }
        if let Some(problem) = rest.decoder.too_long() {
            let error = to_error(rest.provider, 200, problem, None);
            self.rest = None;
            return Err(error);
        }
        if !parts
            .iter()
            .all(|part| matches!(part, AnswerPart::Event(_)))
        {
            rest.body.record_content();
        }
        self.ready.extend(parts);
        let is_overload = rest.decoder.is_overload();
        if rest.decoder.is_over() {
            // Ends the call, even if the server would send more.
            self.rest = None;
        }
        Ok(is_overload)
    }
}
