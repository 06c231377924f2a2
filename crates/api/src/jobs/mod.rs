//! The background jobs of an agent. A [`Job`] is a value: how its due time is found in the storage,
//! and how one step of it runs. [`plan`] decides which jobs are due and when the object's alarm
//! must fire next. The object binds the runtime (`base/background.rs`) and decides nothing.
//!
//! The rules that this module protects:
//!
//! - The alarm is set before a job that may be cut off runs, so an eviction loses no work.
//! - Each step stores what it did before the next step begins. If the object is evicted between two
//!   steps, the next run continues there.
//! - A job that fails stops no other job.

mod alarm;
mod backups;
mod callbacks;
mod index;
mod job;
mod learning;
mod retention;
mod turns;
mod vectors;

use base::background::{JobKind, SHORT_DELAY_MS};

pub use self::alarm::AlarmTime;
pub use self::backups::{back_up_if_due, is_due as is_backup_due};
pub use self::job::{Job, JobTiming};
use self::job::{Run, Step};
use super::operation::Agent;

/// The table of jobs, in the order in which an alarm runs them.
pub static JOBS: &[Job] = &[
    turns::JOB,
    callbacks::JOB,
    learning::JOB,
    vectors::JOB,
    index::JOB,
    retention::JOB,
    backups::JOB,
];

/// The jobs that are due now, and when the alarm must fire.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub due: Vec<JobKind>,
    pub alarm_at: Option<i64>,
}

impl Plan {
    fn fire_at(&mut self, at_ms: i64) {
        self.alarm_at = Some(self.alarm_at.map_or(at_ms, |known| known.min(at_ms)));
    }
}

/// Decides which of the jobs are due, and when the alarm must fire next. A due time that can't be
/// read is logged, and concerns no other job.
pub fn plan(agent: &Agent<'_>, is_included: impl Fn(&Job) -> bool) -> Plan {
    let now_ms = agent.host.now_ms();
    let mut plan = Plan::default();
    for job in JOBS.iter().filter(|job| is_included(job)) {
        let again_after = match (job.find_due)(agent) {
            Ok(None) => None,
            Ok(Some(at_ms)) if at_ms > now_ms => Some(at_ms - now_ms),
            Ok(Some(_)) => {
                plan.due.push(job.kind);
                job.guard_ms
            }
            Err(error) => {
                agent.background.log(&error);
                job.retry_ms
            }
        };
        if let Some(ms) = again_after {
            plan.fire_at(now_ms + ms);
        }
    }
    plan
}

/// The object's alarm.
pub async fn wake(agent: &Agent<'_>) {
    let turns = agent.turns;
    if turns.checks.take_listeners_due(agent.host.now_ms()) {
        turns.disconnect_silent();
    }
    let plan = plan(agent, |_| true);
    let due = |timing| {
        let jobs = JOBS.iter().filter(move |job| job.timing == timing);
        jobs.filter(|job| plan.due.contains(&job.kind))
    };
    for job in due(JobTiming::Immediate) {
        run_steps(agent, job).await;
    }
    if let Some(at_ms) = plan.alarm_at {
        agent.background.wake_by(at_ms).await;
    }
    for job in due(JobTiming::Background) {
        agent.background.start(job.kind);
    }
    for job in due(JobTiming::Alarm) {
        run_steps(agent, job).await;
    }
}

/// Begins the work that an earlier activation left: it may have been evicted before it set an
/// alarm, or a rule may have been deployed since. Runs after the first request of an activation.
pub fn begin(agent: &Agent<'_>) {
    if !agent.background.has_tables() {
        return;
    }
    if let Some(at_ms) = turns::recover(agent) {
        agent.background.wake_within(at_ms - agent.host.now_ms());
    }
    agent.background.start(JobKind::Learning);
    let expected = [JobKind::Retention, JobKind::Backups];
    if !plan(agent, |job| expected.contains(&job.kind))
        .due
        .is_empty()
    {
        agent.background.wake_within(SHORT_DELAY_MS);
    }
    agent.background.start(JobKind::Callbacks);
}

/// Runs one job, if it is due.
pub async fn run(agent: &Agent<'_>, kind: JobKind) {
    if !agent.background.has_tables() {
        return;
    }
    let plan = plan(agent, |job| job.kind == kind);
    if let Some(at_ms) = plan.alarm_at {
        agent.background.wake_by(at_ms).await;
    }
    for job in JOBS.iter().filter(|job| plan.due.contains(&job.kind)) {
        run_steps(agent, job).await;
    }
}

async fn run_steps(agent: &Agent<'_>, job: &Job) {
    let background = agent.background;
    let mut run = Run::default();
    for _ in 0..job.max_steps {
        // The storage may have been emptied while this waited.
        if !background.has_tables() {
            return;
        }
        match (job.step)(agent, &mut run).await {
            Ok(Step::More) => agent.outbound.sleep(0).await,
            Ok(Step::At(at_ms)) => return reschedule(agent, job, at_ms).await,
            Ok(Step::Done) => return,
            Err(_) if !background.has_tables() => return,
            Err(error) => {
                background.log(&error);
                if let Some(retry_ms) = job.retry_ms {
                    let at_ms = agent.host.now_ms() + retry_ms;
                    background.wake_by(at_ms).await;
                }
                return;
            }
        }
    }
    reschedule(agent, job, 0).await;
}

async fn reschedule(agent: &Agent<'_>, job: &Job, at_ms: i64) {
    let now_ms = agent.host.now_ms();
    let at_ms = if at_ms > now_ms {
        at_ms
    } else {
        now_ms + job.pause_ms
    };
    agent.background.wake_by(at_ms).await;
}
