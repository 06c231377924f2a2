//! Schedules learning passes: decides which conversation is next, for the alarm when a pass
//! is due, or for a caller. The alarm also runs the steps of consolidation, if the agent's
//! settings require it.

use super::consolidate::{ConsolidationRequest, step};
use super::pass::{PassResult, run_pass};
use super::target::get_settings;
use base::database::atomically;
use base::error::{Code, Error, Result};
use base::exclusive::Exclusive;
use base::ids::Id;
use conversation::log::learning_watermarks::{
    DueSession, find_next, find_next_timed, find_watermark, postpone,
};
use conversation::log::sessions::session_exists;
use memory::Memory;
use memory::proposals::rows::StoredProposal;
use store::consolidation::{Consolidation, PAUSE_MS, find_consolidation, write_consolidation};
use store::learn_failure::LearnFailure;
use store::learn_settings::IDLE_MS;
use store::learn_settings::{ConsolidationTrigger, LearnTrigger};

/// The most passes of one call, or of one alarm.
const MAX_PASSES: usize = 8;

/// How soon the alarm retries while another pass is running.
const BUSY_MS: i64 = 10_000;

/// The result of one call's passes.
#[derive(Debug, Default)]
pub struct Round {
    pub passes: i64,
    pub events: i64,
    pub proposals: Vec<StoredProposal>,
    /// Whether nothing is left to learn from.
    pub is_complete: bool,
}

impl Round {
    fn add(&mut self, result: PassResult) {
        self.passes += i64::from(result.events > 0);
        self.events += result.events;
        self.proposals.extend(result.proposal);
    }
}

/// Runs passes over a session, or over all sessions with new messages.
pub async fn learn_manually(
    memory: &Memory<'_>,
    only: &Exclusive,
    session_id: Option<&Id>,
) -> Result<Round> {
    get_settings(memory)?;
    if let Some(id) = session_id
        && !session_exists(memory.db, id)?
    {
        return Err(Error::session_not_found(id.as_str()));
    }
    let _lease = only.try_lock().ok_or_else(is_busy)?;
    let mut round = Round::default();
    let mut waiting: Vec<Id> = Vec::new();
    for _ in 0..MAX_PASSES {
        let next = match session_id {
            Some(id) => id.clone(),
            None => match find_next(memory.db, &waiting)? {
                Some(due) => due.id,
                None => break,
            },
        };
        let mut result = run_pass(memory, &next).await?;
        match (result.waits.take(), session_id) {
            (Some(reason), Some(_)) => return Err(reason),
            (Some(_), None) => {
                waiting.push(next);
                continue;
            }
            (None, _) => {}
        }
        let has_more = result.has_more;
        round.add(result);
        if session_id.is_some() && !has_more {
            round.is_complete = true;
            return Ok(round);
        }
    }
    round.is_complete = match session_id {
        Some(_) => false,
        // Sessions that wait for their caller's limits are not counted as left.
        None => find_next(memory.db, &waiting)?.is_none(),
    };
    Ok(round)
}

fn is_busy() -> Error {
    Error::new(
        Code::RateLimited,
        "A learning pass of this agent is already running. Try again in 5 s.",
    )
    .with_retry_after(5)
}

/// The work that is due automatically.
#[derive(Debug, Default)]
struct DueWork {
    pass: Option<DueSession>,
    /// When a step of consolidation is due.
    consolidation_at: Option<i64>,
}

impl DueWork {
    /// Scheduled work is kept until its setting is turned on again.
    fn load(memory: &Memory<'_>) -> Result<Self> {
        let now_ms = memory.host.now_ms();
        let consolidation_at = find_consolidation(memory.db)?.due_at;
        let waiting = Self {
            pass: find_next_timed(memory.db, now_ms)?,
            // As for a pass whose time was written before the clock was set back.
            consolidation_at: consolidation_at.map(|at| {
                if at > now_ms + PAUSE_MS + IDLE_MS {
                    now_ms
                } else {
                    at
                }
            }),
        };
        // An agent that doesn't learn reads no settings for it.
        if waiting.first_at().is_none() {
            return Ok(waiting);
        }
        let Ok((_, settings)) = get_settings(memory) else {
            return Ok(Self::default());
        };
        Ok(Self {
            pass: waiting
                .pass
                .filter(|_| settings.after != LearnTrigger::Manual),
            consolidation_at: waiting
                .consolidation_at
                .filter(|_| settings.consolidate == ConsolidationTrigger::Idle),
        })
    }

    fn first_at(&self) -> Option<i64> {
        let pass_at = self.pass.as_ref().map(|due| due.due_at);
        [pass_at, self.consolidation_at].into_iter().flatten().min()
    }
}

/// When the next pass, or the next step of consolidation, is due automatically. `None`:
/// none is.
pub fn find_due_time(memory: &Memory<'_>) -> Result<Option<i64>> {
    Ok(DueWork::load(memory)?.first_at())
}

/// The result of the alarm's passes.
#[derive(Debug, Default)]
pub struct TimedRound {
    /// When the next pass is due.
    pub next_at: Option<i64>,
    /// The failures of passes and of consolidation, in order.
    pub failures: Vec<Error>,
    /// Whether a proposal was made.
    pub has_learnt: bool,
}

/// Runs the passes and the steps of consolidation that are due. Learning precedes
/// consolidation.
pub async fn learn_if_due(memory: &Memory<'_>, only: &Exclusive) -> Result<TimedRound> {
    let mut round = TimedRound::default();
    let Some(due_at) = find_due_time(memory)? else {
        return Ok(round);
    };
    let now_ms = memory.host.now_ms();
    if due_at > now_ms {
        round.next_at = Some(due_at);
        return Ok(round);
    }
    let Some(_lease) = only.try_lock() else {
        round.next_at = Some(now_ms + BUSY_MS);
        return Ok(round);
    };
    for _ in 0..MAX_PASSES {
        let now_ms = memory.host.now_ms();
        let due = DueWork::load(memory)?;
        let learnt = match due.pass.filter(|pass| pass.due_at <= now_ms) {
            Some(pass) if !is_quiet(memory, &pass.id)? => continue,
            Some(session) => run_pass(memory, &session.id)
                .await
                .map(|result| result.proposal.is_some()),
            None if due.consolidation_at.is_some_and(|at| at <= now_ms) => {
                consolidate_if_due(memory).await
            }
            None => break,
        };
        match learnt {
            Ok(has_learnt) => round.has_learnt |= has_learnt,
            Err(error) => round.failures.push(error),
        }
    }
    round.next_at = find_due_time(memory)?;
    Ok(round)
}

/// Runs a due step of consolidation, and records its failure.
async fn consolidate_if_due(memory: &Memory<'_>) -> Result<bool> {
    let request = ConsolidationRequest {
        is_timed: true,
        ..ConsolidationRequest::default()
    };
    let failed = match step(memory, request).await {
        Ok(ordered) => return Ok(ordered.proposal.is_some()),
        Err(failed) => failed,
    };
    atomically(memory.db, || {
        let state = find_consolidation(memory.db)?;
        let before = state.failure.as_ref();
        let now_ms = memory.host.now_ms();
        let failure = LearnFailure::new(before, &failed.error, failed.is_invalid_answer, now_ms);
        let state = Consolidation {
            due_at: Some(failure.retry_at(&failed.error)),
            failure: Some(failure),
            ..state
        };
        write_consolidation(memory.db, &state)
    })?;
    Err(failed.error)
}

/// Whether a session may be learned from now. If the agent learns from idle conversations
/// and this one had a recent message, the pass is postponed.
fn is_quiet(memory: &Memory<'_>, session_id: &Id) -> Result<bool> {
    let (_, settings) = get_settings(memory)?;
    if settings.after != LearnTrigger::Idle {
        return Ok(true);
    }
    let Some(watermark) = find_watermark(memory.db, session_id)? else {
        return Ok(true);
    };
    // After a failure, the failure's own delay applies.
    let now_ms = memory.host.now_ms();
    let idle_at = watermark.newest_at + IDLE_MS;
    // An event in the future means that the clock was set back, so the idle time is
    // unknown.
    if idle_at <= now_ms || watermark.newest_at > now_ms || watermark.failure.is_some() {
        return Ok(true);
    }
    postpone(memory.db, session_id, idle_at)?;
    Ok(false)
}
