//! Models, one provider a file: what is sent to it and what its answer says.
//! The providers' files are pure: values become JSON, bytes become [`AnswerPart`]s.
//! [`call`] and [`embedding`] ask, by way of `send`, through [`crate::base::outside`].
//!
//! Whoever answers, the parts keep an order: a call is begun before its pieces
//! and complete after them, usage comes before the end, and the end, which is
//! [`AnswerPart::Finish`] or [`Part::Failed`], comes once.

mod answer;
mod anthropic;
mod anthropic_messages;
mod attachment;
pub mod call;
mod call_ids;
mod chat_answer;
mod chat_messages;
pub mod choice;
mod decode;
mod demo;
pub mod embedding;
pub mod file;
mod http_error;
mod mend;
pub mod message;
mod openai;
mod send;
mod sse;
mod workers_ai;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::models::message::ContextMessage;
use choice::Provider;

/// How a request for a summary begins, so that the demo model, which understands
/// nothing, can tell one from a conversation.
pub const SUMMARY_REQUEST: &str = "Summarise this conversation";

/// One step of a turn, as a model is asked for it.
pub struct ModelRequest<'a> {
    /// The system prompt, in the order it is said.
    pub system: &'a [String],
    pub messages: &'a [ContextMessage],
    pub tools: &'a [ToolDefinition],
    pub max_output_tokens: Option<i64>,
}

/// A tool that a model may call. The shape of `getTools`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema.
    pub parameters: Box<RawValue>,
}

/// What a model says, piece by piece, in order.
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
    /// A call is complete. `arguments` is the text that the model sent, whether
    /// or not it is a JSON object; an empty one is given as `{}`.
    Call {
        index: usize,
        id: String,
        name: String,
        arguments: String,
    },
    Usage(TokenUsage),
    Finish(FinishReason),
    /// The provider reported an error inside its answer; nothing follows.
    Failed(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    pub input_tokens: i64,
    pub output_tokens: i64,
}

/// The words of the AI SDK's protocol.
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

/// The input of a model in its provider's shape, as text: without the model's
/// name and without how it is to be answered.
pub fn encode_input(provider: Provider, request: &ModelRequest<'_>) -> String {
    match provider {
        Provider::WorkersAi => workers_ai::encode_input(request),
        Provider::OpenAi => openai::encode_input(request),
        Provider::Anthropic => anthropic::encode_input(request),
    }
}

/// Of our own types, which always are JSON; nothing that fails is a request.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
