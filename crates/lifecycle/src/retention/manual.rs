//! Retention on request: what a run would delete, and the deletions in one session by rules of the
//! request's own.

use crate::json_schema::JsonSchema;
use std::cell::Cell;

use serde::{Deserialize, Serialize};

use super::memory::{DAY_MS, load_block_rules};
use super::sessions::{RetainedSession, find_session};
use super::step::{begin, is_deployed};
use super::walk::{RetentionWalk, WalkBounds, load_rules};
use super::work::StepWork;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use conversation::index::progress::find_number;
use memory::Memory;
use memory::label::Label;
use store::erased::LeftPages;
use store::erasing::ErasingDatabase;
use store::retention::{MemoryRules, Retention};
use store::retention_progress::{
    LastRetentionRun, RetentionCounts, RetentionPosition, RetentionRun, RunStage, find_progress,
};

/// The session or block that a request names, and the rules that it brings.
#[derive(Default)]
pub struct RetentionTarget {
    pub session_id: Option<Id>,
    pub label: Option<Label>,
    pub rules: Option<Retention>,
}

impl RetentionTarget {
    fn bounds(&self, db: &dyn Database) -> Result<WalkBounds> {
        if let (Some(_), Some(rules)) = (&self.label, &self.rules)
            && let Some(name) = rules.find_beyond_block()
        {
            return Err(Error::invalid(
                &format!("retention.{name}"),
                format!("A block has no `{name}`. Omit `label` or this rule."),
            ));
        }
        let session = self.session_id.as_ref();
        Ok(WalkBounds {
            session: session.map(|id| get_number(db, id)).transpose()?,
            block: self.label.as_ref().map(Label::key),
            rules: self.rules.clone(),
        })
    }
}

fn get_number(db: &dyn Database, id: &Id) -> Result<i64> {
    find_number(db, id.as_str())?.ok_or_else(|| Error::session_not_found(id.as_str()))
}

/// The result of a dry run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionPreview {
    pub counts: RetentionCounts,
    /// Whether the dry run covered everything. If not, the counts are the least.
    pub is_complete: bool,
    pub last: Option<LastRetentionRun>,
    pub next_at: Option<i64>,
}

/// Counts what a run that began now would delete there, up to a bound.
pub fn preview(memory: &Memory<'_>, target: &RetentionTarget) -> Result<RetentionPreview> {
    let now_ms = memory.host.now_ms();
    let progress = find_progress(memory.db)?;
    let session = Cell::new(None);
    let db = ErasingDatabase::new(memory.db);
    let bounds = target.bounds(memory.db)?;
    let walk = RetentionWalk::new(memory, &db, now_ms, &session, &bounds)?;
    let mut work = StepWork::new(true);
    let mut run = RetentionRun {
        position: bounds.start(),
        ..begin(now_ms)
    };
    let is_complete = walk.advance(&mut run, &mut work)?;
    Ok(RetentionPreview {
        counts: work.counts,
        is_complete,
        next_at: match &progress {
            Some(progress) => Some(progress.next_at.max(now_ms)),
            None => is_deployed(memory).then_some(now_ms),
        },
        last: progress.and_then(|progress| progress.last),
    })
}

/// The result of a step in one session.
#[derive(Default)]
pub struct SessionStep {
    pub counts: RetentionCounts,
    /// Where the next step begins. `None`: everything was checked.
    pub cursor: Option<String>,
    pub changed: Vec<Id>,
    /// The text in pages that must be cleared now.
    pub left: LeftPages,
}

/// Deletes some of what is old in the session by the rules. `cursor`: from the previous step.
pub fn step_in_session(
    memory: &Memory<'_>,
    target: &RetentionTarget,
    cursor: Option<&str>,
) -> Result<SessionStep> {
    atomically(memory.db, || {
        let now_ms = memory.host.now_ms();
        let bounds = target.bounds(memory.db)?;
        let db = ErasingDatabase::new(memory.db);
        let session = Cell::new(None);
        let walk = RetentionWalk::new(memory, &db, now_ms, &session, &bounds)?;
        let mut run = RetentionRun {
            position: read_cursor(cursor, bounds.start())?,
            ..begin(now_ms)
        };
        let mut work = StepWork::new(false);
        let is_over = walk.advance(&mut run, &mut work)?;
        Ok(SessionStep {
            counts: work.counts,
            cursor: if is_over {
                None
            } else {
                Some(json::encode(&run.position)?)
            },
            changed: work.changed,
            // Earlier steps may have deleted something.
            left: LeftPages {
                is_written: is_over,
                may_repeat: false,
            },
        })
    })
}

/// A cursor names a position within the session that the request names, and no other.
fn read_cursor(cursor: Option<&str>, start: RetentionPosition) -> Result<RetentionPosition> {
    let Some(cursor) = cursor else {
        return Ok(start);
    };
    let position: Option<RetentionPosition> = json::decode(cursor).ok();
    position
        .filter(|position| position.number == start.number && position.stage != RunStage::Over)
        .ok_or_else(|| {
            Error::invalid(
                "cursor",
                "`cursor` must be from the answer to the previous call, for the same session.",
            )
        })
}

/// When retention deletes what a deletion now leaves in this block. `None`: no rule does.
pub fn retained_until(memory: &Memory<'_>, scope: &str, label: &Label) -> Result<Option<i64>> {
    let mut outer = load_rules(memory)?;
    if !scope.is_empty() {
        let id = Id::parse(scope.to_owned()).map_err(Error::storage)?;
        let session: Option<RetainedSession> =
            find_session(memory.db, get_number(memory.db, &id)?)?;
        if let Some(session) = session {
            outer = session.rules(outer);
        }
    }
    let own = load_block_rules(memory.db, scope, memory.deployed)?;
    let rules: MemoryRules = match own.get(&label.key()) {
        Some(own) => own.within(outer.memory),
        None => outer.memory,
    };
    let days = [rules.versions_days, rules.deleted_days];
    let shortest = days.into_iter().flatten().min();
    Ok(shortest.map(|days| memory.host.now_ms() + days * DAY_MS))
}
