//! What a model has said so far in one answer.

use super::turn::AskedCall;
use crate::models::{AnswerPart, FinishReason, TokenUsage};

/// What a model has said so far in one answer.
#[derive(Default)]
pub struct PartialAnswer {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<AskedCall>,
    pub usage: TokenUsage,
    /// Tokens of the model's input, by our own estimate, and what of them is no message.
    pub estimated: i64,
    pub fixed: i64,
    /// Who would refuse the request.
    pub refused_by: String,
    /// The model that is asked.
    pub model: Option<String>,
    pub finish_reason: FinishReason,
}

impl PartialAnswer {
    pub fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        self.text.len() + self.reasoning.len() + calls.sum::<usize>()
    }

    pub fn take(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.text.push_str(&text),
            AnswerPart::Reasoning(text) => self.reasoning.push_str(&text),
            AnswerPart::Call {
                id,
                name,
                arguments,
                ..
            } => self.calls.push(AskedCall {
                id,
                name,
                arguments,
            }),
            AnswerPart::Usage(usage) => self.usage = usage,
            AnswerPart::Finish(reason) => self.finish_reason = reason,
            AnswerPart::CallStart { .. } | AnswerPart::CallDelta { .. } | AnswerPart::Failed(_) => {
            }
        }
    }
}
