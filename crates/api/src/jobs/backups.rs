//! Scheduled backups, which the object's alarm starts.
//!
//! Before a backup begins, the time of the next attempt is written. So an object that is evicted during
//! a backup retries after a pause, and a failing bucket is not called again immediately.

use super::job::{Job, JobTiming, RETRY_MS, Step};
use crate::operation::Agent;
use crate::operations::backups::{back_up, load_plan};
use base::background::{JobKind, SHORT_DELAY_MS};
use base::database::atomically;
use base::error::Result;
use store::backup_plan::{
    BackupPlan, BackupProgress, begin_at, find_progress, forget_progress, write_progress,
};

pub const JOB: Job = Job {
    kind: JobKind::Backups,
    find_due,
    step: |agent, _| {
        Box::pin(async move {
            let next_at = back_up_if_due(agent).await?;
            Ok(next_at.map_or(Step::Done, Step::At))
        })
    },
    timing: JobTiming::Alarm,
    max_steps: 1,
    pause_ms: SHORT_DELAY_MS,
    guard_ms: Some(RETRY_MS),
    retry_ms: None,
};

/// Whether a schedule has work now.
pub fn is_due(agent: &Agent<'_>) -> Result<bool> {
    Ok(find_due(agent)?.is_some_and(|at| at <= agent.host.now_ms()))
}

/// When a schedule has work. Reads one row if no schedule was ever set.
fn find_due(agent: &Agent<'_>) -> Result<Option<i64>> {
    let Some(progress) = find_progress(agent.db)? else {
        let defaults = &agent.deployed.memory.config.defaults;
        let plan = defaults.backups.iter().flatten().next();
        let is_scheduled = plan.is_some_and(|plan| plan.every_ms().is_some());
        return Ok(is_scheduled.then_some(0));
    };
    // A schedule that was removed has work, too: its progress is deleted.
    let every_ms = load_plan(agent)?.every_ms().unwrap_or(0);
    Ok(Some(
        if is_ahead(&progress, agent.host.now_ms(), every_ms) {
            progress.next_at
        } else {
            0
        },
    ))
}

/// Whether the next backup is in the future. It is never further ahead than the schedule's pause,
/// unless the clock was set back.
fn is_ahead(progress: &BackupProgress, now_ms: i64, every_ms: i64) -> bool {
    (now_ms + 1..=now_ms + every_ms).contains(&progress.next_at)
}

/// Makes a backup if one is due. Returns when the next one is; `None`: there is no schedule.
pub async fn back_up_if_due(agent: &Agent<'_>) -> Result<Option<i64>> {
    let now_ms = agent.host.now_ms();
    let Some((plan, every_ms)) = begin(agent, now_ms)? else {
        return Ok(None);
    };
    let Some(plan) = plan else {
        return Ok(Some(every_ms));
    };
    let (next_at, last_at, failure) = match back_up(agent, Some(plan.keep.0)).await {
        Ok(written) => (now_ms + every_ms, Some(written.at), None),
        Err(error) => {
            let next_at = now_ms + RETRY_MS.min(every_ms);
            (next_at, None, Some(error.message.clone()))
        }
    };
    atomically(agent.db, || {
        // The agent may have been destroyed in the meantime, or may have another schedule.
        match find_progress(agent.db)? {
            Some(before) if before.next_at != 0 => {
                write_progress(
                    agent.db,
                    &BackupProgress {
                        next_at,
                        last_at: last_at.or(before.last_at),
                        failure: failure.clone(),
                    },
                )?;
                Ok(Some(next_at))
            }
            Some(_) => Ok(Some(now_ms)),
            None => Ok(None),
        }
    })
}

/// The work to do now: a plan with its pause, or no plan and the time of the next backup.
fn begin(agent: &Agent<'_>, now_ms: i64) -> Result<Option<(Option<BackupPlan>, i64)>> {
    atomically(agent.db, || {
        let progress = find_progress(agent.db)?;
        let plan = load_plan(agent)?;
        let Some(every_ms) = plan.every_ms() else {
            if progress.is_some() {
                forget_progress(agent.db)?;
            }
            return Ok(None);
        };
        let Some(progress) = progress else {
            // A deployed schedule. The agent is new, and may still be imported.
            begin_at(agent.db, now_ms + every_ms)?;
            return Ok(Some((None, now_ms + every_ms)));
        };
        if is_ahead(&progress, now_ms, every_ms) {
            return Ok(Some((None, progress.next_at)));
        }
        let tried = BackupProgress {
            next_at: now_ms + RETRY_MS.min(every_ms),
            ..progress
        };
        write_progress(agent.db, &tried)?;
        Ok(Some((Some(plan), every_ms)))
    })
}
