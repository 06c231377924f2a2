//! Models. Each provider has a file that writes its requests and reads its answers:
//! [`encode_request`] selects it for a request, `decode` for an answer. These files do no I/O:
//! values become JSON, bytes become [`AnswerPart`]s. `demo` answers without a provider. [`call`]
//! and [`embedding`] send requests with `send`, through [`base::outbound`].
//!
//! The parts of every answer have a fixed order. A call begins before its pieces and is complete
//! after them. Usage comes before the end. The end is [`AnswerPart::Finish`] or
//! [`AnswerPart::Failed`], and comes once.

mod answer;
mod anthropic;
mod anthropic_messages;
mod anthropic_thoughts;
pub mod attachment;
pub mod call;
pub mod call_ids;
pub mod caller_fields;
mod chat_answer;
mod chat_messages;
pub mod choice;
pub mod context_windows;
mod decode;
mod demo;
pub mod embedding;
mod http_error;
pub mod json_schema;
pub mod length;
pub mod message;
pub mod metered;
mod openai;
mod reasoning;
mod repair;
mod responses;
mod responses_input;
mod responses_reader;
mod send;
pub mod sse;
mod workers_ai;

pub use conversation::file;

#[cfg(test)]
mod tests;

use crate::json_schema::JsonSchema;
use base::json::RawValue;
use serde::{Deserialize, Serialize};

use crate::caller_fields::{CallerFields, ProviderApi};
use crate::message::ContextMessage;
use base::action::Role;
use base::json::{self, MAX_INTEGER, is_zero};
use choice::{ModelName, Provider};
use store::model_settings::{Prices, ReasoningEffort};

/// How a request for a summary begins. The demo model, which understands no text, recognizes such a
/// request by this beginning.
pub const SUMMARY_REQUEST: &str = "Summarize this conversation";

/// How the requests of learning begin, for the same reason.
pub const LEARN_REQUEST: &str = "Learn from this conversation";
pub const CONSOLIDATE_REQUEST: &str = "Consolidate these entries";

/// The request for one step of a turn.
#[derive(Default)]
pub struct ModelRequest<'a> {
    /// The pieces of the system prompt, in order.
    pub system: &'a [String],
    /// The calls' ids are distinct: see [`call_ids::make_ids_unique`].
    pub messages: &'a [ContextMessage],
    /// The calls of the answer so far. A small window may not contain them any more.
    pub earlier_calls: &'a [String],
    pub tools: &'a [ToolDefinition],
    /// The facts that the model must know now. They are placed after the newest user message, so
    /// that everything before that message stays the same from turn to turn, and a provider's cache
    /// stays usable.
    pub reminder: Option<&'a str>,
    pub max_output_tokens: Option<i64>,
    pub temperature: Option<f64>,
    pub reasoning_effort: Option<ReasoningEffort>,
    /// What the caller requests in its provider's own format, if a request in a provider's API
    /// began the turn.
    pub caller: Option<&'a CallerFields>,
}

impl<'a> ModelRequest<'a> {
    /// The caller's fields, if they are in this provider's format.
    fn caller_of(&self, api: ProviderApi) -> Option<&'a CallerFields> {
        self.caller.filter(|caller| caller.model_api() == api)
    }

    /// The index of the newest user message.
    fn newest_user(&self) -> Option<usize> {
        let is_users = |message: &ContextMessage| message.role == Role::User;
        self.messages.iter().rposition(is_users)
    }
}

/// A tool that a model may call. The shape of `getTools`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListedTool", deny_unknown_fields)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema.
    #[schemars(with = "base::json::JsonObject")]
    pub parameters: Box<RawValue>,
}

/// A part of an answer. The parts come in order.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    Text(String),
    Reasoning(String),
    /// A call begins; its arguments follow in pieces or not at all.
    CallStart {
        index: usize,
        id: String,
        name: String,
    },
    CallDelta {
        index: usize,
        text: String,
    },
    /// A call is complete. `arguments` is the text that the model sent, whether or not it is a JSON
    /// object; an empty text becomes `{}`.
    Call {
        index: usize,
        id: String,
        name: String,
        arguments: String,
    },
    /// The data that the provider requires again with this step, as a JSON object: see
    /// [`ProviderData`](conversation::log::note::ProviderData). Comes at most once, after the calls.
    ProviderData(String),
    Usage(TokenUsage),
    /// An event of the provider, or its whole answer, unchanged, before the parts in it. Only a
    /// caller who uses the provider's API receives it.
    Event(String),
    Finish(FinishReason),
    /// The provider reported an error inside its answer; nothing follows.
    Failed(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// All tokens that the model read, from a cache or not, as the AI SDK counts them.
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `input_tokens` that the provider read from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: i64,
}

impl TokenUsage {
    /// A provider's numbers, limited to what JavaScript represents exactly.
    fn bounded(self) -> Self {
        let input_tokens = self.input_tokens.clamp(0, MAX_INTEGER);
        Self {
            input_tokens,
            output_tokens: self.output_tokens.clamp(0, MAX_INTEGER),
            cached_input_tokens: self.cached_input_tokens.clamp(0, input_tokens),
        }
    }

    /// The cost of a call of this model with this usage.
    pub fn cost(self, prices: &Prices, model: &str) -> f64 {
        prices.cost(
            model,
            self.input_tokens,
            self.cached_input_tokens,
            self.output_tokens,
        )
    }

    /// The sum with another call's usage.
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: self
                .cached_input_tokens
                .saturating_add(other.cached_input_tokens),
        }
        .bounded()
    }
}

/// Why an answer ended, as the AI SDK's protocol names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    #[default]
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
    Other,
}

/// A model's input in its provider's format, as text, without the model's name and the fields of
/// streaming.
pub fn encode_input(provider: Provider, request: &ModelRequest<'_>) -> String {
    match provider {
        Provider::WorkersAi => workers_ai::encode_input(request),
        Provider::OpenAi | Provider::Own => openai::encode_input(request),
        Provider::Anthropic => anthropic::encode_input(request),
    }
}

/// The whole request to a model, as it is sent. Nothing is sent to the demo: it reads what a
/// request in `OpenAI`'s format would contain.
pub fn encode_request(name: &ModelName, request: &ModelRequest<'_>, stream: bool) -> String {
    match name.served() {
        Some((Provider::WorkersAi, _)) => workers_ai::encode(request, stream),
        Some((Provider::OpenAi, model)) => match request.caller_of(ProviderApi::Responses) {
            Some(caller) => responses::encode(request, model, caller),
            None => openai::encode(request, model, stream),
        },
        Some((Provider::Anthropic, model)) => anthropic::encode(request, model, stream),
        Some((Provider::Own, model)) => openai::encode_own(request, model, stream),
        None => encode_input(Provider::OpenAi, request),
    }
}

/// The most tokens that a model may answer, unless a setting has another number.
pub fn answer_tokens(model: &ModelName) -> i64 {
    match model.served() {
        Some((Provider::WorkersAi, _)) => workers_ai::DEFAULT_MAX_TOKENS,
        Some((Provider::Anthropic, _)) => anthropic::DEFAULT_MAX_TOKENS,
        Some((Provider::OpenAi | Provider::Own, _)) | None => 4_096,
    }
}

/// Only for our own types, which always serialize to JSON.
fn to_json(value: &impl Serialize) -> String {
    json::encode(value).unwrap_or_default()
}
