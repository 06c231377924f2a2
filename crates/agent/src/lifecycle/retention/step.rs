//! One step of a run: a transaction that goes on where the last one ended.

use std::cell::Cell;

use serde::Serialize;

use super::checkpoints;
use super::erase;
use super::events;
use super::memory::{DAY_MS, KeptMemory, load_block_rules, versions_days};
use super::sessions::{IdleSession, ThreadPart, delete_if_idle, find_next, find_session};
use super::work::StepWork;
use crate::base::database::atomically;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::memory::Memory;
use crate::store::config::load_config;
use crate::store::erasing::ErasingDatabase;
use crate::store::retention::{Retention, RetentionRules};
use crate::store::retention_progress::{
    LastRetentionRun, RUN_EVERY_MS, RetentionCounts, RetentionProgress, RetentionRun, RunPlace,
    RunStage, find_progress, forget_progress, write_progress,
};

/// What a step did.
#[derive(Debug, Default)]
pub struct RetentionStep {
    pub gone: RetentionCounts,
    /// Whether the run goes on.
    pub has_more: bool,
    /// When the next run may begin; `None`: no rule is left.
    pub next_at: Option<i64>,
    /// The sessions whose conversations changed.
    pub changed: Vec<Id>,
    /// The last run that came to its end.
    pub last: Option<LastRetentionRun>,
    /// The tables whose pages are to be cleared now (`store/schema/free_space.rs`).
    pub purged: Vec<&'static str>,
    /// Why a session was left out.
    pub failure: Option<Error>,
}

/// Who clears pages after the last deletion of a run (`RetentionStep::purged`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The caller clears them after this step, which may then end the run.
    ClearedAfter,
    /// The caller clears them, and takes another step. An object that dies before it has
    /// cleared them finds the run as it was.
    NotCleared,
    /// The caller has cleared them.
    Cleared,
}

/// Whether a step has something to do now. One row, or none where no rule was ever set.
pub fn is_due(memory: &Memory<'_>) -> Result<bool> {
    Ok(match find_progress(memory.db)? {
        Some(progress) => progress.is_due(memory.host.now_ms()),
        None => is_deployed(memory),
    })
}

/// Whether the deployed defaults have rules.
fn is_deployed(memory: &Memory<'_>) -> bool {
    let deployed = memory.deployed;
    deployed.config.defaults.retention.is_some()
        || deployed
            .blocks
            .iter()
            .any(|block| block.retention.is_some())
}

/// Takes a step if one is due. A step that did nothing says when the next run begins.
/// `None`: no rule was ever set.
pub fn step_if_due(memory: &Memory<'_>, pages: Pages) -> Result<Option<RetentionStep>> {
    match find_progress(memory.db)? {
        Some(progress) if !progress.is_due(memory.host.now_ms()) => Ok(Some(RetentionStep {
            next_at: Some(progress.next_at),
            ..RetentionStep::default()
        })),
        None if !is_deployed(memory) => Ok(None),
        Some(_) | None => step(memory, pages).map(Some),
    }
}

/// Takes one step of the run that goes on, or begins a run. Each step is a transaction.
pub fn step(memory: &Memory<'_>, pages: Pages) -> Result<RetentionStep> {
    let session = Cell::new(None);
    let error = match atomically(memory.db, || take_step(memory, pages, &session)) {
        Ok(step) => return Ok(step),
        Err(error) => error,
    };
    // A row that can't be read costs its own session, and no other.
    let Some(number) = session.get() else {
        return Err(error);
    };
    atomically(memory.db, || {
        let now_ms = memory.host.now_ms();
        let mut progress = find_progress(memory.db)?.unwrap_or_default();
        let run = take_run(&mut progress, now_ms);
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

/// The run that goes on, or one that begins now.
fn take_run(progress: &mut RetentionProgress, now_ms: i64) -> RetentionRun {
    progress.run.take().unwrap_or_else(|| {
        progress.next_at = now_ms + RUN_EVERY_MS;
        begin(now_ms)
    })
}

fn begin(now_ms: i64) -> RetentionRun {
    RetentionRun {
        started_at: now_ms,
        ..RetentionRun::default()
    }
}

fn take_step(
    memory: &Memory<'_>,
    pages: Pages,
    session: &Cell<Option<i64>>,
) -> Result<RetentionStep> {
    let erasing = ErasingDatabase::new(memory.db);
    let db = &erasing;
    let now_ms = memory.host.now_ms();
    let mut progress = find_progress(db)?.unwrap_or_default();
    let was_there = progress != RetentionProgress::default();
    let mut run = take_run(&mut progress, now_ms);
    let mut work = StepWork::new(false);
    let walk = RetentionWalk::new(memory, db, run.started_at, session)?;
    let mut purged = Vec::new();
    let is_over = walk.go_on(&mut run, &mut work)? && {
        // The last step comes by itself, so that it is as short as the others.
        let was_finishing = std::mem::replace(&mut run.is_finishing, true);
        let is_clean =
            run.gone == RetentionCounts::default() && work.gone == RetentionCounts::default();
        if was_finishing && !is_clean && pages != Pages::Cleared {
            purged = erase::finish(db)?;
        }
        is_clean || (was_finishing && pages != Pages::NotCleared)
    };
    run.steps += 1;
    run.gone.join(&work.gone);
    let has_rules = walk.has_rules()?;
    let mut step = RetentionStep {
        gone: work.gone,
        has_more: !is_over,
        next_at: has_rules.then_some(progress.next_at),
        changed: work.changed,
        last: None,
        purged,
        failure: None,
    };
    if is_over && !has_rules {
        if was_there {
            forget_progress(db)?;
        }
        return Ok(step);
    }
    if is_over {
        // Rules that were set meanwhile have the next run begin at once.
        step.has_more = progress.next_at == 0;
        progress.last = Some(LastRetentionRun {
            started_at: run.started_at,
            ended_at: now_ms,
            steps: run.steps,
            gone: run.gone,
            skipped: run.skipped,
        });
    } else {
        progress.run = Some(run);
    }
    write_progress(db, &progress)?;
    step.last = progress.last;
    Ok(step)
}

/// What a dry run found.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct RetentionPreview {
    pub counts: RetentionCounts,
    /// Whether the dry run looked at everything. If not, the counts are the least.
    pub is_complete: bool,
    pub last: Option<LastRetentionRun>,
    pub next_at: Option<i64>,
}

/// Counts what a run that began now would delete, up to a bound.
pub fn preview(memory: &Memory<'_>) -> Result<RetentionPreview> {
    let now_ms = memory.host.now_ms();
    let progress = find_progress(memory.db)?;
    let session = Cell::new(None);
    let db = ErasingDatabase::new(memory.db);
    let walk = RetentionWalk::new(memory, &db, now_ms, &session)?;
    let mut work = StepWork::new(true);
    let is_complete = walk.go_on(&mut begin(now_ms), &mut work)?;
    Ok(RetentionPreview {
        counts: work.gone,
        is_complete,
        next_at: match &progress {
            Some(progress) => Some(progress.next_at.max(now_ms)),
            None => is_deployed(memory).then_some(now_ms),
        },
        last: progress.and_then(|progress| progress.last),
    })
}

/// The agent's rules: its own, or those that are deployed.
fn load_rules(memory: &Memory<'_>) -> Result<RetentionRules> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let retention: Retention = config.retention.unwrap_or_default();
    Ok(retention.within(RetentionRules::default()))
}

/// The way of a run through the agent.
struct RetentionWalk<'a> {
    memory: &'a Memory<'a>,
    db: &'a ErasingDatabase<'a>,
    agents: RetentionRules,
    /// The shortest time for which the agent's blocks keep earlier versions. Prompts of all
    /// sessions show these blocks.
    shown_days: Option<i64>,
    /// When the run began.
    now_ms: i64,
    /// The session that is looked at.
    session: &'a Cell<Option<i64>>,
}

impl<'a> RetentionWalk<'a> {
    fn new(
        memory: &'a Memory<'a>,
        db: &'a ErasingDatabase<'a>,
        now_ms: i64,
        session: &'a Cell<Option<i64>>,
    ) -> Result<Self> {
        let agents = load_rules(memory)?;
        let own = load_block_rules(db, "", memory.deployed)?;
        Ok(Self {
            memory,
            db,
            shown_days: versions_days(&own, agents.memory),
            agents,
            now_ms,
            session,
        })
    }

    /// Whether every session is looked at, and not those alone that have rules.
    fn visits_all(&self) -> bool {
        !self.agents.are_off() || self.shown_days.is_some()
    }

    /// Goes on until the work's bounds are reached. Returns whether the run is over.
    fn go_on(&self, run: &mut RetentionRun, work: &mut StepWork) -> Result<bool> {
        while work.has_room() {
            if run.place.stage != RunStage::Over {
                self.go_on_here(run, work)?;
                continue;
            }
            work.look(1);
            let Some(number) = find_next(self.db, run.place.number, self.visits_all())? else {
                return Ok(true);
            };
            run.place = RunPlace {
                number,
                ..RunPlace::default()
            };
        }
        Ok(false)
    }

    fn go_on_here(&self, run: &mut RetentionRun, work: &mut StepWork) -> Result<()> {
        let place = &mut run.place;
        if place.number == 0 {
            let memory = self.memory_of("", self.agents)?;
            if place.stage == RunStage::Idle {
                place.stage = RunStage::BlockVersions;
                memory.forget_old_proposals(work)?;
                return memory.forget_old_prompt(work);
            }
            return memory.go_on(place, work);
        }
        if run.failed_at == Some(place.number) {
            run.failed_at = None;
            run.skipped += 1;
            place.stage = RunStage::Over;
            // Written at once, so that a session that fails next can't bring this one back.
            work.end();
            return Ok(());
        }
        self.session.set(Some(place.number));
        match self.go_on_in_session(place, work) {
            // A dry run leaves out what a run would leave out.
            Err(_) if work.is_dry => place.stage = RunStage::Over,
            done => done?,
        }
        self.session.set(None);
        Ok(())
    }

    fn go_on_in_session(&self, place: &mut RunPlace, work: &mut StepWork) -> Result<()> {
        work.look(1);
        let Some(session) = find_session(self.db, place.number)? else {
            place.stage = RunStage::Over;
            return Ok(());
        };
        if session.is_pinned {
            place.stage = RunStage::Over;
            return Ok(());
        }
        let rules = session.rules(self.agents);
        let cutoff = |days: i64| self.now_ms - days * DAY_MS;
        let host = self.memory.host;
        match place.stage {
            RunStage::Idle => {
                place.stage = RunStage::Checkpoints;
                if let Some(days) = rules.sessions_idle_days {
                    match delete_if_idle(self.db, host, &session, cutoff(days), work)? {
                        IdleSession::Stays => {}
                        IdleSession::Gone => place.stage = RunStage::Over,
                        IdleSession::Shorter => place.stage = RunStage::Idle,
                    }
                }
                Ok(())
            }
            RunStage::Checkpoints => {
                let is_over = match (rules.runs_kept, &session.thread) {
                    (Some(kept), Some(ThreadPart::Checkpoints(thread))) => {
                        checkpoints::delete_old(self.db, host, &session, thread, kept, place, work)?
                    }
                    (Some(_), Some(ThreadPart::Writes(_)) | None) | (None, _) => true,
                };
                if is_over {
                    place.stage = RunStage::Events;
                    place.after_seq = 0;
                }
                Ok(())
            }
            RunStage::Events => {
                // A checkpoint uses values that are older than itself. So of a thread whole
                // checkpoints go, and not events by their age.
                let is_thread = session.thread.is_some();
                let is_over = match rules.events_days.filter(|_| !is_thread) {
                    Some(days) => {
                        let cutoff = cutoff(days);
                        events::delete_old(self.db, host, &session.id, cutoff, place, work)?
                    }
                    None => true,
                };
                if is_over {
                    place.stage = RunStage::BlockVersions;
                    let memory = self.memory_of(session.id.as_str(), rules)?;
                    memory.forget_old_prompt(work)?;
                }
                Ok(())
            }
            _ => self
                .memory_of(session.id.as_str(), rules)?
                .go_on(place, work),
        }
    }

    fn memory_of<'m>(&'m self, scope: &'m str, rules: RetentionRules) -> Result<KeptMemory<'m>> {
        let deployed = self.memory.deployed;
        let shown = self.shown_days;
        KeptMemory::load(self.db, deployed, scope, rules.memory, self.now_ms, shown)
    }

    /// Whether anything has rules.
    fn has_rules(&self) -> Result<bool> {
        Ok(!self.agents.are_off()
            || find_next(self.db, 0, false)?.is_some()
            || !load_block_rules(self.db, "", self.memory.deployed)?.is_empty())
    }
}
