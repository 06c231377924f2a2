//! The end of a driven turn: writes the turn into the log, and then notifies its listeners.

use super::{Broken, TurnDriver};
use crate::frames::outgoing::{TurnOutcome, render_failed};
use crate::record::RecordedFailure;
use crate::run::ending::write;
use crate::run::tracing::trace_turn;
use crate::turn::TurnEnding;
use crate::turn::report::{TurnReport, step_limit_reached, usage_metadata};
use base::error::{Error, Result};
use models::FinishReason;

impl TurnDriver<'_> {
    /// Writes the turn's answer into the log, then reports the end of the turn.
    pub(super) async fn finish(self, outcome: Result<TurnEnding, Broken>) {
        let has_lost_log = self.running.has_lost_log();
        // If the log no longer exists, the turn ended because the agent was destroyed,
        // whatever error that caused.
        let outcome = if has_lost_log {
            Err(Broken::Cancelled)
        } else {
            outcome
        };
        match outcome {
            Ok(_) => {}
            Err(Broken::Cancelled) => self.turn.borrow_mut().cancel(),
            Err(Broken::Failed(_)) => self.turn.borrow_mut().fail(),
        }
        let report = self.report(&outcome);
        let written = if has_lost_log {
            Ok(false)
        } else {
            write(
                &self.context.memory,
                &self.turn.borrow(),
                &report,
                self.running.is_cancelled(),
            )
        };
        self.trace(&report, written.as_ref().err());
        let written = written.map(|has_callback| {
            if has_callback {
                self.context.memory.new_callbacks.mark();
            }
        });
        let metadata = usage_metadata(self.config(), &report);
        let mut writer = self.writer.borrow_mut();
        let (chunks, turn_outcome) = match (&written, &outcome) {
            (Err(error), _) | (Ok(()), Err(Broken::Failed(error))) => {
                (writer.fail(&error.message), TurnOutcome::Error)
            }
            (Ok(()), Err(Broken::Cancelled)) => (writer.abort(None), TurnOutcome::Aborted),
            (Ok(()), Ok(TurnEnding::Answered(reason))) => {
                (writer.finish(*reason, metadata), TurnOutcome::Completed)
            }
            (Ok(()), Ok(TurnEnding::LeftToClient)) => (
                writer.finish(FinishReason::ToolCalls, metadata),
                TurnOutcome::Completed,
            ),
            (Ok(()), Ok(TurnEnding::StepLimit)) => {
                let error = step_limit_reached(&self.turn.borrow());
                (writer.fail(&error.message), TurnOutcome::Error)
            }
        };
        drop(writer);
        let failed = match (&written, &outcome) {
            (Err(error), _) | (Ok(()), Err(Broken::Failed(error))) => Some(error.message.clone()),
            _ => None,
        };
        self.emit(chunks);
        let session_id = &self.running.session_id;
        if self.context.audience.is_watching(session_id) {
            let frame = match failed {
                Some(sentence) => render_failed(
                    &self.running.request_id,
                    &sentence,
                    self.running.is_continuation,
                ),
                None => self.running.frame_header(false).render_done(turn_outcome),
            };
            self.context.audience.send(session_id, &frame, None);
        }
        self.running.set_retained_bytes(0);
        let report = written.map(|()| report);
        self.context.turns.end(self.running, turn_outcome, report);
    }

    /// Queues the turn's spans for the operator's receiver. `failure`: the end could not be
    /// written.
    fn trace(&self, report: &TurnReport, failure: Option<&Error>) {
        let memory = &self.context.memory;
        let turn = self.turn.borrow();
        let mut record = report.record(&turn, memory.host.now_ms(), Some(&turn.message_id));
        record.failure = failure.map(RecordedFailure::of).or(record.failure);
        trace_turn(memory, &turn, report, &record);
    }

    fn report(&self, outcome: &Result<TurnEnding, Broken>) -> TurnReport {
        let turn = self.turn.borrow();
        match outcome {
            Ok(ending) => TurnReport::of_ending(&turn, ending),
            Err(Broken::Cancelled) => TurnReport::of_cancelled(&turn),
            Err(Broken::Failed(error)) => TurnReport::of_failure(&turn, error),
        }
    }
}
