//! Resumes interrupted turns, and what waits behind turns. While a turn runs, an alarm is set: if
//! the object is evicted, the alarm finds the turn.

use super::job::{Job, JobTiming, Step};
use crate::operation::Agent;
use base::background::{CHECK_AFTER_MS, JobKind};
use chat::run::resume::resume_some_turns;

pub const JOB: Job = Job {
    kind: JobKind::Turns,
    // Each alarm checks: a turn can be interrupted at any time.
    find_due: |_| Ok(Some(0)),
    step: |agent, _| Box::pin(async move { Ok(recover(agent).map_or(Step::Done, Step::At)) }),
    timing: JobTiming::Immediate,
    max_steps: 1,
    pause_ms: CHECK_AFTER_MS,
    guard_ms: None,
    retry_ms: None,
};

/// Resumes some of the interrupted turns. Returns when to check again; `None`: no turn is left, and
/// none runs.
pub fn recover(agent: &Agent<'_>) -> Option<i64> {
    let round = resume_some_turns(agent);
    for failure in &round.failures {
        agent.background.log(failure);
    }
    for work in round.works {
        agent.starter.begin(work);
    }
    agent.turns.checks.set_recovery_due(round.is_more_left);
    let checks_again = round.is_more_left || agent.turns.is_busy();
    checks_again.then(|| agent.host.now_ms() + CHECK_AFTER_MS)
}
