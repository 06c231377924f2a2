//! Automatic compaction: runs after the response to an append, at most once at a time per
//! session, and with hysteresis.
//!
//! The tracker has a cache, and leases that end with the work they guard. Both may be lost at any
//! time.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::act::{CompactionOutcome, CompactionReason, CompactionTask, Compactor};
use super::estimate::{Estimate, PathMeasure, PromptOverhead, measure};
use super::journal::load_journal;
use super::settings::CompactionSettings;
use crate::compaction::configure::load_settings;
use crate::compaction::settings::OwnSettings;
use base::database::Database;
use base::error::{Code, Result};
use base::ids::Id;
use conversation::log::sessions::LastCompactionError;
use conversation::log::tip::get_tip;
use conversation::session::changes::LogState;

/// The maximum number of sessions whose measurements are cached.
const MAX_KNOWN: usize = 1_000;

/// The maximum number of consecutive compactions if one can't cover the whole middle.
const MAX_ROUNDS: usize = 8;

/// If a compaction could not bring a conversation below the threshold, the conversation
/// must grow by at least this many tokens before the next compaction.
const MIN_GROWTH_TOKENS: i64 = 1_000;

/// The maximum pause between two failed attempts, in events.
const MAX_PAUSE_EVENTS: i64 = 64;

#[derive(Default)]
pub struct CompactionTracker {
    running: RefCell<HashSet<String>>,
    known: RefCell<HashMap<String, MeasuredPath>>,
    /// Sessions whose chat turns fill their context window, and the window's tokens.
    filling: RefCell<HashMap<String, i64>>,
    /// Compacted sessions whose sockets have not been notified yet.
    compacted: RefCell<HashSet<String>>,
}

/// The measurement of a path, and the log's state at that time.
#[derive(Clone, Copy)]
struct MeasuredPath {
    leaf_seq: i64,
    state: LogState,
    measure: PathMeasure,
}

/// Held while a session is being compacted.
pub struct Lease<'a> {
    compactions: &'a CompactionTracker,
    session_id: String,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.compactions
            .running
            .borrow_mut()
            .remove(&self.session_id);
    }
}

impl CompactionTracker {
    /// `None`: another compaction of this session is running.
    pub fn try_start(&self, session_id: &Id) -> Option<Lease<'_>> {
        let session_id = session_id.as_str().to_owned();
        let is_free = self.running.borrow_mut().insert(session_id.clone());
        is_free.then(|| Lease {
            compactions: self,
            session_id,
        })
    }

    /// Records that the session's chat turns fill their context window, which has this many tokens.
    /// The work after the turn compacts the session.
    pub fn mark_filling(&self, session_id: &Id, tokens: i64) {
        let mut filling = self.filling.borrow_mut();
        if filling.len() >= MAX_KNOWN {
            filling.clear();
        }
        filling.insert(session_id.as_str().to_owned(), tokens);
    }

    /// Records the outcome of a compaction.
    fn record(&self, session_id: &Id, outcome: &CompactionOutcome) {
        if outcome.reason == CompactionReason::Compacted {
            let mut compacted = self.compacted.borrow_mut();
            if compacted.len() >= MAX_KNOWN {
                compacted.clear();
            }
            compacted.insert(session_id.as_str().to_owned());
        }
    }

    /// Whether the session was compacted since the last call.
    pub fn take_compacted(&self, session_id: &Id) -> bool {
        self.compacted.borrow_mut().remove(session_id.as_str())
    }

    /// Measures the path that ends at `leaf_seq`. Messages that were measured before are
    /// not read again, as long as the object stays in memory and the log changed only by
    /// appends.
    pub fn measure(
        &self,
        db: &dyn Database,
        session_id: &Id,
        leaf_seq: i64,
    ) -> Result<PathMeasure> {
        let state = LogState::load(db, session_id)?;
        let known = self.known.borrow().get(session_id.as_str()).copied();
        let known = known
            .filter(|known| known.state == state && known.leaf_seq <= leaf_seq)
            .map(|known| (known.leaf_seq, known.measure));
        let measure = measure(db, session_id, leaf_seq, known)?;
        let mut all = self.known.borrow_mut();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(
            session_id.as_str().to_owned(),
            MeasuredPath {
                leaf_seq,
                state,
                measure,
            },
        );
        Ok(measure)
    }
}

/// Compacts the branch that grew, if this is due. Callers run it after they have answered
/// the append. Returns the last outcome, or `None` if no compaction was due.
pub async fn after_append(
    compactions: &CompactionTracker,
    compactor: &Compactor<'_>,
    deployed: &OwnSettings,
    session_id: &Id,
    load_fixed: &dyn Fn() -> Result<PromptOverhead>,
) -> Result<Option<CompactionOutcome>> {
    let settings = match load_settings(compactor.db, deployed, Some(session_id)) {
        Ok(settings) => settings,
        // The session was deleted after the append.
        Err(error) if error.code == Code::SessionNotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let filling = compactions.filling.borrow_mut().remove(session_id.as_str());
    let mut last = None;
    if let Some(tokens) = filling
        && !settings.is_off
        && let Some(leaf) = get_tip(compactor.db, session_id)?.leaf
        && !is_pausing(
            load_journal(compactor.db, session_id)?.last_error.as_ref(),
            leaf.seq,
        )
    {
        compactor.summariser.notify_started(session_id);
        last = compact_for_turn(
            compactions,
            compactor,
            session_id,
            leaf.seq,
            settings,
            (&load_fixed()?, tokens),
        )
        .await?;
    }
    if settings.compact_after.is_none() {
        return Ok(last);
    }
    let Some(_lease) = compactions.try_start(session_id) else {
        return Ok(last);
    };
    for _ in 0..MAX_ROUNDS {
        let Some(leaf) = get_tip(compactor.db, session_id)?.leaf else {
            break;
        };
        let fixed = load_fixed()?;
        let measure = compactions.measure(compactor.db, session_id, leaf.seq)?;
        let failed = load_journal(compactor.db, session_id)?.last_error;
        let messages = fixed.calibration.correct(measure.tokens);
        let is_due = is_due(&settings, fixed.with(messages), measure.after_compaction)
            && !is_pausing(failed.as_ref(), leaf.seq);
        let continues = last.as_ref().is_some_and(|last: &CompactionOutcome| {
            last.has_more && last.reason == CompactionReason::Compacted
        });
        if !is_due && !continues {
            break;
        }
        let task = CompactionTask {
            session_id,
            leaf_seq: leaf.seq,
            settings,
            fixed,
            is_auto: true,
            dry_run: false,
            capacity: None,
        };
        if last.is_none() {
            compactor.summariser.notify_started(session_id);
        }
        let outcome = compactor.compact(&task).await?;
        compactions.record(session_id, &outcome);
        let is_over = outcome.reason != CompactionReason::Compacted;
        last = Some(outcome);
        if is_over {
            break;
        }
    }
    Ok(last)
}

/// Compacts for the chat turns of a session, whose context window has this many tokens. `None`:
/// compaction for chat turns is off, or another compaction of this session is running.
pub async fn compact_for_turn(
    compactions: &CompactionTracker,
    compactor: &Compactor<'_>,
    session_id: &Id,
    leaf_seq: i64,
    settings: CompactionSettings,
    (fixed, tokens): (&PromptOverhead, i64),
) -> Result<Option<CompactionOutcome>> {
    let capacity = tokens - fixed.system_prompt - fixed.tools;
    if settings.is_off || capacity <= 0 {
        return Ok(None);
    }
    let Some(_lease) = compactions.try_start(session_id) else {
        return Ok(None);
    };
    let mut last = None;
    for _ in 0..MAX_ROUNDS {
        let task = CompactionTask {
            session_id,
            leaf_seq,
            settings,
            fixed: *fixed,
            is_auto: true,
            dry_run: false,
            capacity: Some(capacity),
        };
        let outcome = compactor.compact(&task).await?;
        compactions.record(session_id, &outcome);
        let continues = outcome.has_more && outcome.reason == CompactionReason::Compacted;
        last = Some(outcome);
        if !continues {
            break;
        }
    }
    Ok(last)
}

/// Whether the context has grown past the threshold. The threshold is the configured
/// limit. If the last compaction ended near the limit or above it, the threshold is the
/// size after that compaction plus the limit (at least `MIN_GROWTH_TOKENS`).
fn is_due(
    settings: &CompactionSettings,
    estimate: Estimate,
    after_compaction: Option<i64>,
) -> bool {
    let Some(limit) = settings.compact_after else {
        return false;
    };
    let threshold = match after_compaction {
        None => limit,
        Some(after) if after < limit / 4 * 3 => limit,
        Some(after) => after + limit.max(MIN_GROWTH_TOKENS),
    };
    // The tail can't be compacted.
    estimate.total > threshold && estimate.messages > settings.tail_token_budget
}

/// After consecutive failures, attempts are this many events apart: 1, 2, 4, …
fn is_pausing(failed: Option<&LastCompactionError>, newest_seq: i64) -> bool {
    failed.is_some_and(|last| {
        let pause = 1_i64 << last.attempts.saturating_sub(1).min(6);
        newest_seq - last.seq < pause.min(MAX_PAUSE_EVENTS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(compact_after: Option<i64>) -> CompactionSettings {
        CompactionSettings {
            compact_after,
            protect_head: 3,
            tail_token_budget: 50,
            min_tail_messages: 2,
            is_off: false,
        }
    }

    #[test]
    fn the_threshold_rises_after_a_compaction_that_saved_little() {
        for (limit, after, tokens, expected) in [
            (None, None, 1_000_000, false),
            (Some(100), None, 100, false),
            (Some(100), None, 101, true),
            // Only the tail.
            (Some(10), None, 50, false),
            (Some(10), None, 51, true),
            // Well below the limit again: the configured threshold.
            (Some(1_000), Some(400), 1_000, false),
            (Some(1_000), Some(400), 1_001, true),
            (Some(1_000), Some(749), 1_001, true),
            // Near or above the limit: the limit is added on top, and never just one more
            // message.
            (Some(1_000), Some(750), 1_750, false),
            (Some(1_000), Some(750), 1_751, true),
            (Some(5_000), Some(6_000), 11_000, false),
            (Some(5_000), Some(6_000), 11_001, true),
            (Some(10), Some(500), 1_500, false),
            (Some(10), Some(500), 1_501, true),
        ] {
            assert_eq!(
                is_due(
                    &settings(limit),
                    PromptOverhead::default().with(tokens),
                    after
                ),
                expected,
                "{limit:?} {after:?} {tokens}"
            );
        }
    }

    #[test]
    fn repeated_failures_are_retried_less_and_less_often() {
        let last = |attempts| LastCompactionError {
            code: String::new(),
            message: String::new(),
            at: 0,
            attempts,
            seq: 10,
        };
        assert!(!is_pausing(None, 10));
        for (attempts, first_seq) in [(1, 11), (2, 12), (3, 14), (7, 74), (60, 74)] {
            assert!(
                is_pausing(Some(&last(attempts)), first_seq - 1),
                "{attempts}"
            );
            assert!(!is_pausing(Some(&last(attempts)), first_seq), "{attempts}");
        }
    }
}
