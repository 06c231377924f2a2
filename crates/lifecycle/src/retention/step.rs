//! One step of a retention run: a transaction that continues where the last one ended.

use std::cell::Cell;

use super::walk::{EVERYTHING, RetentionWalk};
use super::work::StepWork;
use base::database::atomically;
use base::error::{Error, Result};
use base::ids::Id;
use memory::Memory;
use store::erased::LeftPages;
use store::erasing::ErasingDatabase;
use store::retention_progress::{
    LastRetentionRun, RUN_EVERY_MS, RetentionCounts, RetentionProgress, RetentionRun,
    find_progress, forget_progress, write_progress,
};

/// The result of a step.
#[derive(Debug, Default)]
pub struct RetentionStep {
    pub counts: RetentionCounts,
    /// Whether the run continues.
    pub has_more: bool,
    /// When the next run may begin; `None`: no rule is left.
    pub next_at: Option<i64>,
    /// The sessions whose conversations changed.
    pub changed: Vec<Id>,
    /// The last completed run.
    pub last: Option<LastRetentionRun>,
    /// The text in pages that must be cleared now (`lifecycle/page_clearing.rs`).
    pub left: LeftPages,
    /// Why a session was skipped.
    pub failure: Option<Error>,
}

/// Who clears the pages after the last deletion of a run (`RetentionStep::left`), and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The caller clears them after this step, which may then end the run.
    ClearedAfter,
    /// The caller clears them, and then runs another step. If the object is evicted before it has
    /// cleared them, the run is unchanged.
    NotCleared,
    /// The caller has cleared them.
    Cleared,
}

/// Whether a step has something to do now.
pub fn is_due(memory: &Memory<'_>) -> Result<bool> {
    Ok(find_due(memory)?.is_some_and(|at| at <= memory.host.now_ms()))
}

/// When a step has something to do. One row. `None`: no rule was ever set.
pub fn find_due(memory: &Memory<'_>) -> Result<Option<i64>> {
    Ok(match find_progress(memory.db)? {
        Some(progress) if progress.is_due(memory.host.now_ms()) => Some(0),
        Some(progress) => Some(progress.next_at),
        None => is_deployed(memory).then_some(0),
    })
}

/// Whether the deployed defaults have rules.
pub fn is_deployed(memory: &Memory<'_>) -> bool {
    let deployed = memory.deployed;
    deployed.config.defaults.retention.is_some()
        || deployed
            .blocks
            .iter()
            .any(|block| block.retention.is_some())
}

/// Runs a step if one is due. Otherwise the result only has the time of the next run. `None`: no
/// rule was ever set.
pub fn step_if_due(memory: &Memory<'_>, pages: Pages) -> Result<Option<RetentionStep>> {
    match find_due(memory)? {
        None => Ok(None),
        Some(due_at) if due_at > memory.host.now_ms() => Ok(Some(RetentionStep {
            next_at: Some(due_at),
            ..RetentionStep::default()
        })),
        Some(_) => step(memory, pages).map(Some),
    }
}

/// Runs one step of the current run, or begins a run. Each step is a transaction.
pub fn step(memory: &Memory<'_>, pages: Pages) -> Result<RetentionStep> {
    let session = Cell::new(None);
    let error = match atomically(memory.db, || run_step(memory, pages, &session)) {
        Ok(step) => return Ok(step),
        Err(error) => error,
    };
    // A row that can't be read affects only its own session.
    let Some(number) = session.get() else {
        return Err(error);
    };
    atomically(memory.db, || {
        let now_ms = memory.host.now_ms();
        let mut progress = find_progress(memory.db)?.unwrap_or_default();
        let run = resume_or_start_run(&mut progress, now_ms);
        if run.failed_at == Some(number) {
            return Err(Error::storage("retention can't pass a session"));
        }
        progress.run = Some(RetentionRun {
            failed_at: Some(number),
            ..run
        });
        write_progress(memory.db, &progress)
    })?;
    Ok(RetentionStep {
        has_more: true,
        failure: Some(error),
        ..RetentionStep::default()
    })
}

/// The current run, or one that begins now.
fn resume_or_start_run(progress: &mut RetentionProgress, now_ms: i64) -> RetentionRun {
    progress.run.take().unwrap_or_else(|| {
        progress.next_at = now_ms + RUN_EVERY_MS;
        begin(now_ms)
    })
}

pub fn begin(now_ms: i64) -> RetentionRun {
    RetentionRun {
        started_at: now_ms,
        ..RetentionRun::default()
    }
}

fn run_step(
    memory: &Memory<'_>,
    pages: Pages,
    session: &Cell<Option<i64>>,
) -> Result<RetentionStep> {
    let erasing = ErasingDatabase::new(memory.db);
    let db = &erasing;
    let now_ms = memory.host.now_ms();
    let mut progress = find_progress(db)?.unwrap_or_default();
    let had_progress = progress != RetentionProgress::default();
    let mut run = resume_or_start_run(&mut progress, now_ms);
    let mut work = StepWork::new(false);
    let walk = RetentionWalk::new(memory, db, run.started_at, session, &EVERYTHING)?;
    let mut left = LeftPages::default();
    let is_over = walk.advance(&mut run, &mut work)? && {
        // The final step runs by itself to bound its duration.
        let was_finishing = std::mem::replace(&mut run.is_finishing, true);
        let is_clean =
            run.counts == RetentionCounts::default() && work.counts == RetentionCounts::default();
        // The pages of all steps of the run are cleared after its last one.
        left.is_written = was_finishing && !is_clean && pages != Pages::Cleared;
        is_clean || (was_finishing && pages != Pages::NotCleared)
    };
    run.steps += 1;
    run.counts.join(&work.counts);
    let has_rules = walk.has_rules()?;
    let mut step = RetentionStep {
        counts: work.counts,
        has_more: !is_over,
        next_at: has_rules.then_some(progress.next_at),
        changed: work.changed,
        last: None,
        left,
        failure: None,
    };
    if is_over && !has_rules {
        if had_progress {
            forget_progress(db)?;
        }
        return Ok(step);
    }
    if is_over {
        // If rules were set in the meantime, the next run begins at once.
        step.has_more = progress.next_at == 0;
        progress.last = Some(LastRetentionRun {
            started_at: run.started_at,
            ended_at: now_ms,
            steps: run.steps,
            counts: run.counts,
            skipped: run.skipped,
        });
    } else {
        progress.run = Some(run);
    }
    write_progress(db, &progress)?;
    step.last = progress.last;
    Ok(step)
}
