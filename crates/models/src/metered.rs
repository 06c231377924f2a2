//! The spending of a finished model call, for limits and for usage. If a provider reports no
//! tokens, the estimates of the request and of the received answer count. So stopping an answer
//! does not avoid its cost.

use super::TokenUsage;
use base::error::{Code, Error, ErrorKind, Result};
use conversation::session::meter::{CallSpending, Meter, ReservedCall};

/// The end of a call.
pub struct EndedCall<'a> {
    /// The tokens that the provider reported.
    pub usage: TokenUsage,
    /// Tokens of the received answer, by our own estimate.
    pub received_tokens: i64,
    pub outcome: CallOutcome<'a>,
}

pub enum CallOutcome<'a> {
    Whole,
    /// The answer was canceled before its end.
    Canceled,
    Failed(&'a Error),
}

/// Replaces the estimate of a call by its real spending, if the call has a limit.
pub fn settle(meter: &Meter<'_>, reserved: Option<&ReservedCall>, spent: TokenUsage) -> Result<()> {
    let spent = CallSpending {
        input_tokens: spent.input_tokens,
        cached_input_tokens: spent.cached_input_tokens,
        output_tokens: spent.output_tokens,
    };
    reserved.map_or(Ok(()), |reserved| meter.settle(reserved, &spent))
}

impl EndedCall<'_> {
    /// The spending of the call, for limits, usage and the call of `onTurnEnd`. `sent`:
    /// the tokens of the request, by our own estimate.
    pub fn spent(&self, sent: i64) -> TokenUsage {
        let usage = self.usage;
        let has_reported = usage != TokenUsage::default();
        if !has_reported && self.was_never_read() {
            return TokenUsage::default();
        }
        let is_whole = matches!(self.outcome, CallOutcome::Whole);
        TokenUsage {
            input_tokens: match usage.input_tokens {
                0 => sent,
                reported => reported,
            },
            cached_input_tokens: usage.cached_input_tokens,
            // A report that came before the answer's end counts only the tokens until
            // then.
            output_tokens: if is_whole && has_reported {
                usage.output_tokens
            } else {
                usage.output_tokens.max(self.received_tokens)
            },
        }
    }

    /// Whether the provider rejected the request, or never received it.
    fn was_never_read(&self) -> bool {
        let CallOutcome::Failed(error) = self.outcome else {
            return false;
        };
        let is_refused = error.code != Code::ModelFailed
            || matches!(
                error.kind,
                Some(ErrorKind::RefusedByModel | ErrorKind::RefusedForLength { .. })
            );
        is_refused && self.received_tokens == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_report_is_estimated_unless_it_was_refused() {
        let spent = |usage: (i64, i64), received_tokens, outcome: CallOutcome<'_>| {
            let call = EndedCall {
                usage: TokenUsage {
                    input_tokens: usage.0,
                    output_tokens: usage.1,
                    cached_input_tokens: 0,
                },
                received_tokens,
                outcome,
            };
            let spent = call.spent(100);
            (spent.input_tokens, spent.output_tokens)
        };
        let silent = Error::new(Code::ModelFailed, "It did not answer.");
        let refused = Error::new(Code::ModelFailed, "No.").of_kind(ErrorKind::RefusedByModel);
        let overloaded = Error::new(Code::ModelOverloaded, "Busy.");
        for (usage, received, outcome, expected) in [
            ((7, 3), 9, CallOutcome::Whole, (7, 3)),
            ((0, 0), 9, CallOutcome::Whole, (100, 9)),
            ((0, 0), 9, CallOutcome::Canceled, (100, 9)),
            ((0, 0), 0, CallOutcome::Canceled, (100, 0)),
            ((7, 1), 9, CallOutcome::Canceled, (7, 9)),
            ((0, 0), 0, CallOutcome::Failed(&silent), (100, 0)),
            ((0, 0), 0, CallOutcome::Failed(&refused), (0, 0)),
            ((0, 0), 0, CallOutcome::Failed(&overloaded), (0, 0)),
            ((0, 0), 9, CallOutcome::Failed(&refused), (100, 9)),
            ((7, 1), 0, CallOutcome::Failed(&refused), (7, 1)),
        ] {
            assert_eq!(
                spent(usage, received, outcome),
                expected,
                "{usage:?} {received}"
            );
        }
    }
}
