//! Deletes what is older than the rules allow (`lifecycle/retention/`).

use super::job::{Job, JobTiming, RETRY_MS, Run, Step};
use crate::dispatch::clear_pages;
use crate::operation::Agent;
use base::background::{JobKind, SHORT_DELAY_MS};
use base::error::Result;
use lifecycle::retention::{Pages, find_due, step_if_due};

pub const JOB: Job = Job {
    kind: JobKind::Retention,
    find_due: |agent| find_due(&agent.memory()),
    step: |agent, run| Box::pin(step(agent, run)),
    timing: JobTiming::Alarm,
    // A pause follows, after which the platform grants a new allowance.
    max_steps: 50,
    pause_ms: SHORT_DELAY_MS,
    guard_ms: None,
    retry_ms: Some(RETRY_MS),
};

async fn step(agent: &Agent<'_>, run: &mut Run) -> Result<Step> {
    let pages = if std::mem::take(&mut run.has_cleared_pages) {
        Pages::Cleared
    } else {
        Pages::NotCleared
    };
    let Some(step) = step_if_due(&agent.memory(), pages)? else {
        return Ok(Step::Done);
    };
    if let Some(failure) = &step.failure {
        agent.background.log(failure);
    }
    for session_id in &step.changed {
        agent.background.show(session_id);
    }
    if step.left.needs_clearing() {
        // If this fails, the next run or purge clears these pages.
        agent.work.pages.add(&step.left);
        if let Err(error) = clear_pages(agent, &step.left).await {
            agent.background.log(&error);
        }
        run.has_cleared_pages = true;
    }
    Ok(if step.has_more {
        Step::More
    } else {
        step.next_at.map_or(Step::Done, Step::At)
    })
}
