//! Writes the turn's record while the turn runs.

use super::TurnDriver;
use crate::record::{CompactionRecord, ContextRecord, RecordedFailure, StepRecord, TurnFinish};
use crate::tools::turn_tools::TurnTools;
use crate::turn::CallState;
use crate::turn::partial_answer::PartialAnswer;
use base::error::Result;
use base::tokens;
use context::compaction::act::CompactionOutcome;
use context::working_context::build::{WorkingContext, message_tokens};
use context::working_context::truncate::is_shortened;
use models::TokenUsage;
use store::config::Config;

/// A finished request to a model.
pub(super) struct FinishedStep<'a> {
    pub started_at: i64,
    pub received: &'a PartialAnswer,
    pub model: Option<&'a str>,
    pub spent: TokenUsage,
    /// `None`: the request was canceled.
    pub outcome: Option<&'a Result<()>>,
}

/// The parts of a context that is sent, in estimated tokens.
pub(super) fn parts_of(
    context: &WorkingContext,
    (tools, reminder): (i64, i64),
    (window_tokens, hidden): (i64, i64),
) -> ContextRecord {
    let messages = context.messages.iter().map(message_tokens).sum();
    let instructions = context.system_instructions.iter();
    let shortened = (context.messages.iter()).filter(|message| is_shortened(&message.content));
    ContextRecord {
        system_prompt: instructions.map(|text| tokens::estimate(text)).sum(),
        tools,
        messages,
        reminder,
        total: context.tokens_estimate + tools + reminder,
        window_tokens,
        sent_messages: context.messages.len() as i64,
        left_out_messages: hidden,
        shortened_messages: shortened.count() as i64,
    }
}

impl TurnDriver<'_> {
    pub(super) fn now(&self) -> i64 {
        self.context.memory.host.now_ms()
    }

    pub(super) fn record_step(&self, config: &Config, step: &FinishedStep<'_>) {
        let FinishedStep {
            started_at,
            received,
            model,
            spent,
            outcome,
        } = *step;
        let now = self.now();
        let sent_at = received.sent_at.unwrap_or(now);
        let cost = match (&config.prices, model) {
            (Some(prices), Some(model)) => spent.cost(prices, model),
            _ => 0.0,
        };
        self.turn.borrow_mut().record.add_step(StepRecord {
            started_at,
            prepared_ms: sent_at - started_at,
            time_to_first_token_ms: received.first_at.map(|first_at| first_at - sent_at),
            duration_ms: now - started_at,
            model: model.map(str::to_owned),
            answered_by: received.answered_by.clone(),
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_input_tokens: spent.cached_input_tokens,
            cost,
            finish_reason: match outcome {
                Some(Ok(())) => Some(TurnFinish::from(received.finish_reason)),
                Some(Err(_)) | None => None,
            },
            failure: match outcome {
                Some(Err(error)) => Some(RecordedFailure::of(error)),
                Some(Ok(())) | None => None,
            },
            context: received.context,
            ..StepRecord::default()
        });
    }

    /// Records the calls in the newest answer.
    pub(super) fn record_calls(&self, turn_tools: &TurnTools<'_>) {
        let turn = &mut *self.turn.borrow_mut();
        let Some(newest) = turn.steps.last() else {
            return;
        };
        let calls = newest.calls.iter();
        let tools = calls.map(|call| call.to_record(turn_tools.kind(call.name.as_str())));
        turn.record.record_calls(tools.collect());
    }

    /// Whether the newest calls are an earlier turn's, which the user approved since, and have no
    /// entries yet.
    pub(super) fn has_approved(&self) -> bool {
        let turn = self.turn.borrow();
        turn.record.steps.is_empty() && turn.steps.last().is_some_and(|step| step.is_logged)
    }

    /// Adds entries for such calls. This turn has no request to a model for them.
    pub(super) fn record_approved(&self, turn_tools: &TurnTools<'_>) {
        let mut turn = self.turn.borrow_mut();
        let started_at = self.now();
        turn.record.add_step(StepRecord {
            started_at,
            ..StepRecord::default()
        });
        drop(turn);
        self.record_calls(turn_tools);
    }

    /// Records that calls of the newest step start now.
    pub(super) fn record_start(&self, calls: &[usize]) {
        let now = self.now();
        let mut turn = self.turn.borrow_mut();
        for index in calls {
            if let Some(tool) = turn.record.tool_mut(*index) {
                tool.started_at = Some(now);
            }
        }
    }

    pub(super) fn record_end(&self, index: usize, state: &CallState) {
        let now = self.now();
        let mut turn = self.turn.borrow_mut();
        if let Some(tool) = turn.record.tool_mut(index) {
            tool.duration_ms = tool.started_at.map(|started_at| now - started_at);
            tool.error = state.find_recorded_error(true);
        }
    }

    pub(super) fn record_compaction(
        &self,
        started_at: i64,
        made: &Result<Option<CompactionOutcome>>,
    ) {
        let outcome = made.as_ref().ok().and_then(Option::as_ref);
        let failed = outcome.and_then(|outcome| outcome.error.as_ref());
        let failure = failed.or(made.as_ref().err()).map(RecordedFailure::of);
        let compaction = CompactionRecord {
            started_at,
            duration_ms: self.now() - started_at,
            tokens_before: outcome.map(|outcome| outcome.tokens_before),
            tokens_after: outcome.map(|outcome| outcome.tokens_after),
            failure,
        };
        self.turn.borrow_mut().record.record_compaction(compaction);
    }
}
