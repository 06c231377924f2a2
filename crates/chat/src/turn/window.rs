//! The part of a conversation that a turn sends to its model: the model's window, less
//! capacity for the answer, corrected by refusals because of length.

use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use context::compaction::journal::{change_journal, load_journal};
use context::working_context::budget::{Budget, WindowSteps};
use context::working_context::fitting::FittedContext;
use conversation::session::last_turns::load_calibration;
use models::choice::ModelChoice;
use models::context_windows::load_window;
use models::length::LengthRefusal;
use models::{ToolDefinition, answer_tokens};
use store::calibration::Calibration;
use store::config::Config;
use store::learned_windows::{add_learned_window, find_learned_window, store_named_window};

use crate::turn::Turn;
use crate::turn::store::save_turn;
use context::compaction::fixed::tools_tokens;
use context::tools::has_search;

/// The most events in the context of a turn.
const CONTEXT_EVENTS: usize = 1_000;

/// The most bytes that are sent to a model. Twice this is two thirds of the memory that all
/// turns may use.
pub const MAX_SENT_BYTES: usize = 8 << 20;

/// The answer's part of a small window: a quarter.
const ANSWER_SHARE: i64 = 4;

/// How full a window may get, in percent, before the conversation is compacted. Messages
/// are counted as if all long ones were truncated.
const COMPACT_PERCENT: i64 = 60;

/// After a refusal without numbers, the next request is this percentage of the refused one.
const RETRY_PERCENT: i64 = 70;

/// The most models for which a session stores a learned limit.
const MAX_LEARNED_WINDOWS: usize = 4;

/// A learned limit is reduced to this percentage, because a provider's count differs from
/// an estimate by a few percent.
const LEARNED_PERCENT: i64 = 95;

/// The window of one turn.
pub struct TurnWindow {
    /// The most tokens of a request to the model, as its provider counts them.
    pub tokens: i64,
    pub calibration: Calibration,
    /// The most tokens of the answer. Set if the agent sets a limit, or if the window has
    /// no capacity for the number that would otherwise be requested.
    pub answer_tokens: Option<i64>,
}

impl TurnWindow {
    pub fn load(
        db: &dyn Database,
        host: &dyn Host,
        session_id: &Id,
        config: &Config,
        choice: &ModelChoice,
    ) -> Result<Self> {
        let calibration = load_calibration(db, session_id)?;
        let configured = config.max_context_tokens.map(|tokens| tokens.0);
        let model = choice.name.to_string();
        let whole = load_window(db, host.now_ms(), configured, &choice.name)?;
        let limit = config.max_output_tokens.map(|limit| limit.0);
        let wanted = limit.unwrap_or_else(|| answer_tokens(&choice.name));
        let answer = wanted.min(whole / ANSWER_SHARE);
        let mut tokens = whole - answer;
        let learned_windows = load_journal(db, session_id)?.learned_windows;
        if let Some(learned) = find_learned_window(&learned_windows, host.now_ms(), &model) {
            tokens = tokens.min(percent(calibration.correct(learned), LEARNED_PERCENT));
        }
        Ok(Self {
            tokens,
            calibration,
            answer_tokens: (limit.is_some() || answer < wanted && choice.name.served().is_some())
                .then_some(answer),
        })
    }

    /// The budget of the context. `others` are the estimated tokens of the parts other than
    /// messages, tools and instructions.
    pub fn budget(
        &self,
        db: &dyn Database,
        session_id: &Id,
        tools: &[ToolDefinition],
        others: i64,
    ) -> Result<Budget<'static>> {
        Ok(Budget {
            tokens: self.tokens,
            calibration: self.calibration,
            tools: tools_tokens(tools) + others,
            bytes: MAX_SENT_BYTES,
            events: CONTEXT_EVENTS,
            steps: WindowSteps::Positioned(
                load_journal(db, session_id)?.window.unwrap_or_default(),
            ),
            field: "maxContextTokens",
            has_search: has_search(tools),
        })
    }

    /// Whether the conversation should be compacted after the turn.
    pub fn is_filling(&self, fitted: &FittedContext) -> bool {
        fitted.hidden > 0
            || self.calibration.correct(fitted.least_tokens) > percent(self.tokens, COMPACT_PERCENT)
            || fitted.events as i64 > percent(CONTEXT_EVENTS as i64, COMPACT_PERCENT)
    }
}

/// Stores the window's new position, if the window moved.
pub fn store_window(db: &dyn Database, session_id: &Id, fitted: &FittedContext) -> Result<()> {
    match fitted.moved {
        Some(moved) => change_journal(db, session_id, |journal| journal.window = Some(moved)),
        None => Ok(()),
    }
}

/// A request that was refused for its length.
pub struct RefusedRequest<'a> {
    pub refusal: LengthRefusal,
    pub model: &'a str,
    /// The estimated tokens of the request. `fixed` is the part that is not messages.
    pub estimated: i64,
    pub fixed: i64,
}

impl RefusedRequest<'_> {
    /// The estimated tokens that the next request may have.
    fn learned_limit(&self) -> i64 {
        let LengthRefusal { sent, most, .. } = self.refusal;
        let estimate = match (sent, most) {
            (Some(sent), Some(most)) if most < sent => {
                (self.estimated as f64 * most as f64 / sent as f64) as i64
            }
            _ => percent(self.estimated, RETRY_PERCENT),
        };
        // The prompt and the tools need some capacity for a short message in addition. With
        // less, no conversation is possible, whatever the provider reports.
        let least = self.fixed + (self.fixed / 4).max(500);
        estimate.min(percent(self.estimated, 90)).max(least)
    }

    /// Learns a limit from the refusal, and stores the turn's next step. The limit is the
    /// session's own, except for a window that the provider names. Returns the error if the
    /// turn ends with it.
    pub fn learn(
        &self,
        db: &dyn Database,
        host: &dyn Host,
        turn: &mut Turn,
        error: Error,
    ) -> Result<()> {
        let tries_again = turn.length_feedback.record_refusal();
        let learned_limit = self.learned_limit();
        atomically(db, || {
            let now_ms = host.now_ms();
            change_journal(db, &turn.session_id, |journal| {
                let learned_windows = &mut journal.learned_windows;
                add_learned_window(
                    learned_windows,
                    MAX_LEARNED_WINDOWS,
                    now_ms,
                    (self.model, learned_limit),
                );
            })?;
            if let Some(window) = self.refusal.window {
                store_named_window(db, now_ms, self.model, window)?;
            }
            save_turn(db, turn)
        })?;
        if tries_again {
            return Ok(());
        }
        let message = format!(
            "{} The conversation was shortened and sent again, and was refused again. The next \
             turn will send at most about {learned_limit} tokens. Set `maxContextTokens` to the model's \
             context window.",
            error.message
        );
        Err(error.with_message(message))
    }
}

fn percent(number: i64, percent: i64) -> i64 {
    number / 100 * percent + number % 100 * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_refusal_is_learned_from_and_shrinks_the_request() {
        let learned_limit = |sent, most, fixed| {
            let request = RefusedRequest {
                refusal: LengthRefusal {
                    sent,
                    most,
                    window: most,
                },
                model: "m",
                estimated: 10_000,
                fixed,
            };
            request.learned_limit()
        };
        assert_eq!(learned_limit(Some(16_000), Some(8_000), 0), 5_000);
        assert_eq!(learned_limit(None, None, 0), 7_000);
        assert_eq!(learned_limit(None, Some(8_000), 0), 7_000);
        // A provider that contradicts itself, or reports a tiny limit.
        assert_eq!(learned_limit(Some(8_000), Some(8_000), 0), 7_000);
        assert_eq!(learned_limit(Some(8_100), Some(8_000), 0), 9_000);
        assert_eq!(learned_limit(Some(1_000_000), Some(1), 0), 500);
        assert_eq!(learned_limit(Some(1_000_000), Some(1), 4_000), 5_000);
    }
}
