//! The walk of a retention run through the agent: its own memory first, then each session. A
//! request may limit the walk to one session or one block, and may bring rules of its own.

use std::cell::Cell;

use super::checkpoints;
use super::events;
use super::memory::{DAY_MS, MemoryRetention, load_block_rules, versions_days};
use super::sessions::{IdleSession, ThreadPart, delete_if_idle, find_session};
use super::work::StepWork;
use base::error::Result;
use conversation::log::session_lookup::find_next;
use memory::Memory;
use store::config::load_config;
use store::erasing::ErasingDatabase;
use store::retention::{BlockRetention, Retention, RetentionRules};
use store::retention_progress::{RetentionPosition, RetentionRun, RunStage};

/// The bounds of a walk, and the rules that a request brings for it.
#[derive(Default)]
pub struct WalkBounds {
    /// The number of the one session. `None`: the agent, with all sessions.
    pub session: Option<i64>,
    /// The key of the one block.
    pub block: Option<String>,
    /// The rules that apply there instead of the stored ones.
    pub rules: Option<Retention>,
}

/// The whole agent, by its configured rules.
pub const EVERYTHING: WalkBounds = WalkBounds {
    session: None,
    block: None,
    rules: None,
};

impl WalkBounds {
    /// The rules that the request brings for this level.
    fn rules_of(&self, is_level: bool) -> Option<&Retention> {
        self.rules.as_ref().filter(|_| is_level)
    }

    /// The only block of the walk, with the rules that the request brings for it.
    pub fn only_block(&self) -> Option<(&str, Option<BlockRetention>)> {
        let rules = self.rules.as_ref().map(Retention::of_block);
        self.block.as_deref().map(|block| (block, rules))
    }

    /// Where the walk begins.
    pub fn start(&self) -> RetentionPosition {
        RetentionPosition {
            number: self.session.unwrap_or(0),
            stage: match self.block {
                Some(_) => RunStage::BlockVersions,
                None => RunStage::Idle,
            },
            ..RetentionPosition::default()
        }
    }
}

/// The agent's rules: its own, or those that are deployed.
pub fn load_rules(memory: &Memory<'_>) -> Result<RetentionRules> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let retention: Retention = config.retention.unwrap_or_default();
    Ok(retention.within(RetentionRules::default()))
}

/// A walk within one step.
pub struct RetentionWalk<'a> {
    memory: &'a Memory<'a>,
    db: &'a ErasingDatabase<'a>,
    agents: RetentionRules,
    /// The shortest time for which the agent's blocks store earlier versions. Prompts of all
    /// sessions show these blocks.
    shown_days: Option<i64>,
    /// When the run began.
    now_ms: i64,
    /// The session that is being processed.
    session: &'a Cell<Option<i64>>,
    bounds: &'a WalkBounds,
}

impl<'a> RetentionWalk<'a> {
    pub fn new(
        memory: &'a Memory<'a>,
        db: &'a ErasingDatabase<'a>,
        now_ms: i64,
        session: &'a Cell<Option<i64>>,
        bounds: &'a WalkBounds,
    ) -> Result<Self> {
        let is_agent = bounds.session.is_none() && bounds.block.is_none();
        let agents = match bounds.rules_of(is_agent) {
            Some(rules) => rules.within(RetentionRules::default()),
            None => load_rules(memory)?,
        };
        let own = load_block_rules(db, "", memory.deployed)?;
        Ok(Self {
            memory,
            db,
            shown_days: versions_days(&own, agents.memory),
            agents,
            now_ms,
            session,
            bounds,
        })
    }

    /// Whether the walk is limited to one session or block.
    fn is_narrow(&self) -> bool {
        self.bounds.session.is_some() || self.bounds.block.is_some()
    }

    /// Whether the walk visits every session, and not only those with rules.
    fn visits_all(&self) -> bool {
        !self.agents.are_off() || self.shown_days.is_some()
    }

    /// Continues until the work's bounds are reached. Returns whether the run is over.
    pub fn advance(&self, run: &mut RetentionRun, work: &mut StepWork) -> Result<bool> {
        while work.has_capacity() {
            if run.position.stage != RunStage::Over {
                self.advance_here(run, work)?;
                continue;
            }
            if self.is_narrow() {
                return Ok(true);
            }
            work.count_scanned(1);
            let Some(number) = find_next(self.db, run.position.number, !self.visits_all())? else {
                return Ok(true);
            };
            run.position = RetentionPosition {
                number,
                ..RetentionPosition::default()
            };
        }
        Ok(self.is_narrow() && run.position.stage == RunStage::Over)
    }

    fn advance_here(&self, run: &mut RetentionRun, work: &mut StepWork) -> Result<()> {
        let position = &mut run.position;
        if position.number == 0 {
            let memory = self.memory_of("", self.agents)?;
            if position.stage == RunStage::Idle {
                position.stage = RunStage::BlockVersions;
                memory.forget_old_proposals(work)?;
                return memory.forget_old_prompt(work);
            }
            return memory.advance(position, work);
        }
        if run.failed_at == Some(position.number) {
            run.failed_at = None;
            run.skipped += 1;
            position.stage = RunStage::Over;
            // Written at once, so that a failure in the next session can't undo this.
            work.end();
            return Ok(());
        }
        self.session.set(Some(position.number));
        match self.advance_in_session(position, work) {
            // A dry run skips what a run would skip.
            Err(_) if work.is_dry => position.stage = RunStage::Over,
            done => done?,
        }
        self.session.set(None);
        Ok(())
    }

    fn advance_in_session(
        &self,
        position: &mut RetentionPosition,
        work: &mut StepWork,
    ) -> Result<()> {
        work.count_scanned(1);
        let Some(session) = find_session(self.db, position.number)? else {
            position.stage = RunStage::Over;
            return Ok(());
        };
        if session.is_pinned {
            position.stage = RunStage::Over;
            return Ok(());
        }
        let is_session = self.bounds.session.is_some() && self.bounds.block.is_none();
        let rules = match self.bounds.rules_of(is_session) {
            Some(rules) => rules.within(self.agents),
            None => session.rules(self.agents),
        };
        let cutoff = |days: i64| self.now_ms - days * DAY_MS;
        let host = self.memory.host;
        work.preview.enter(position.number);
        match position.stage {
            RunStage::Idle => {
                position.stage = RunStage::Checkpoints;
                if let Some(days) = rules.sessions_idle_days {
                    match delete_if_idle(self.db, host, &session, cutoff(days), work)? {
                        IdleSession::Unchanged => {}
                        IdleSession::Deleted => position.stage = RunStage::Over,
                        IdleSession::Trimmed => position.stage = RunStage::Idle,
                    }
                }
                Ok(())
            }
            RunStage::Checkpoints => {
                let is_over = match (rules.runs_kept, &session.thread) {
                    (Some(most), Some(ThreadPart::Checkpoints(thread))) => checkpoints::delete_old(
                        self.db, host, &session, thread, most, position, work,
                    )?,
                    (Some(_), Some(ThreadPart::Writes(_)) | None) | (None, _) => true,
                };
                if is_over {
                    position.stage = RunStage::Events;
                    position.after_seq = 0;
                }
                Ok(())
            }
            RunStage::Events => {
                // A checkpoint uses values that are older than itself. So a thread's checkpoints
                // are deleted whole, and its events are not deleted by age.
                let is_thread = session.thread.is_some();
                let is_over = match rules.events_days.filter(|_| !is_thread) {
                    Some(days) => {
                        let cutoff = cutoff(days);
                        events::delete_old(self.db, host, &session.id, cutoff, position, work)?
                    }
                    None => true,
                };
                if is_over {
                    position.stage = RunStage::BlockVersions;
                    let memory = self.memory_of(session.id.as_str(), rules)?;
                    memory.forget_old_prompt(work)?;
                }
                Ok(())
            }
            _ => self
                .memory_of(session.id.as_str(), rules)?
                .advance(position, work),
        }
    }

    fn memory_of<'m>(
        &'m self,
        scope: &'m str,
        rules: RetentionRules,
    ) -> Result<MemoryRetention<'m>> {
        let deployed = self.memory.deployed;
        let shown = self.shown_days;
        let memory =
            MemoryRetention::load(self.db, deployed, scope, rules.memory, self.now_ms, shown)?;
        Ok(match self.bounds.only_block() {
            Some((block, rules)) => memory.only(block, rules),
            None => memory,
        })
    }

    /// Whether anything has rules.
    pub fn has_rules(&self) -> Result<bool> {
        Ok(!self.agents.are_off()
            || find_next(self.db, 0, true)?.is_some()
            || !load_block_rules(self.db, "", self.memory.deployed)?.is_empty())
    }
}
