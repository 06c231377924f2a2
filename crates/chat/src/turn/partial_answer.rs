//! The part of one answer that was received from a model so far.

use crate::record::ContextRecord;
use crate::turn::ModelCall;
use base::error::{Code, Error};
use base::tokens;
use conversation::session::meter::ReservedCall;
use memory::origin::Origin;
use models::{AnswerPart, FinishReason, TokenUsage};

const BYTES_PER_TOKEN: usize = 4;

/// The part of one answer that was received from a model so far.
#[derive(Default)]
pub struct PartialAnswer {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<ModelCall>,
    /// The data that the provider expects back with the answer: a JSON object.
    pub provider_data: Option<String>,
    pub usage: TokenUsage,
    /// Tokens of the model's input, by our own estimate. `fixed` are those that do not
    /// belong to messages.
    pub estimated: i64,
    pub fixed: i64,
    /// The model that would refuse the request.
    pub refused_by: String,
    /// The source of untrusted content in the request.
    pub untrusted: Option<Origin>,
    /// The model that the request was sent to.
    pub model: Option<String>,
    /// The model that answers, as the provider names it.
    pub answered_by: Option<String>,
    pub finish_reason: FinishReason,
    /// Bytes of arguments received so far, of calls that may never be complete.
    pub argument_bytes: usize,
    /// Tokens of the request: our own estimate, corrected to the provider's count.
    pub sent: i64,
    /// When the request was sent, and when the first part of the answer arrived.
    pub sent_at: Option<i64>,
    pub first_at: Option<i64>,
    /// The parts of the request.
    pub context: Option<ContextRecord>,
    /// The reservation for the request, made before it was sent.
    pub reserved: Option<ReservedCall>,
}

impl PartialAnswer {
    pub fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        let provider_data = self.provider_data.as_ref().map_or(0, String::len);
        self.text.len() + self.reasoning.len() + provider_data + calls.sum::<usize>()
    }

    /// The failure of a whole answer that contains no text and no call: its reader would wait for
    /// nothing. `needs_content`: an answer that the model itself ended must not be empty.
    pub fn find_silence(&self, needs_content: bool) -> Option<Error> {
        let message = match self.finish_reason {
            _ if !self.text.is_empty() || !self.calls.is_empty() => return None,
            FinishReason::Length => {
                "The model used its whole output limit before it answered. Set a larger \
                 `maxOutputTokens`, or a lower `reasoningEffort`."
            }
            FinishReason::ContentFilter => "The provider's content filter withheld the answer.",
            // A tool that the provider ran itself may be the whole answer.
            FinishReason::Stop
            | FinishReason::ToolCalls
            | FinishReason::Error
            | FinishReason::Other
                if !needs_content || !self.reasoning.is_empty() || self.provider_data.is_some() =>
            {
                return None;
            }
            FinishReason::Stop
            | FinishReason::ToolCalls
            | FinishReason::Error
            | FinishReason::Other => {
                "The model returned an empty answer. If it always does, check its name and its \
                 base URL."
            }
        };
        Some(Error::new(Code::ModelFailed, message))
    }

    /// Tokens of the received part, by our own estimate.
    pub fn tokens(&self) -> i64 {
        let calls = self.calls.iter();
        let whole: i64 = calls.map(|call| tokens::estimate(&call.arguments)).sum();
        let partial = i64::try_from(self.argument_bytes / BYTES_PER_TOKEN).unwrap_or(i64::MAX);
        tokens::estimate(&self.text) + tokens::estimate(&self.reasoning) + whole.max(partial)
    }

    /// Records when the model's first output arrived.
    pub fn record_first(&mut self, part: &AnswerPart, now_ms: i64) {
        if let AnswerPart::Text(_)
        | AnswerPart::Reasoning(_)
        | AnswerPart::CallStart { .. }
        | AnswerPart::CallDelta { .. }
        | AnswerPart::Call { .. } = part
        {
            self.first_at.get_or_insert(now_ms);
        }
    }

    pub fn add(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.text.push_str(&text),
            AnswerPart::Reasoning(text) => self.reasoning.push_str(&text),
            AnswerPart::Call {
                id,
                name,
                arguments,
                ..
            } => self.calls.push(ModelCall {
                id,
                name,
                arguments,
            }),
            AnswerPart::ProviderData(provider_data) => self.provider_data = Some(provider_data),
            AnswerPart::Usage(usage) => self.usage = usage,
            AnswerPart::Finish(reason) => self.finish_reason = reason,
            AnswerPart::CallDelta { text, .. } => self.argument_bytes += text.len(),
            AnswerPart::CallStart { .. } | AnswerPart::Failed(_) | AnswerPart::Event(_) => {}
        }
    }
}
