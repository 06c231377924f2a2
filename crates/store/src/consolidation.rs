//! The progress of consolidation, and when it is due automatically: one value of
//! `cf_agents_config`, written with each step. An agent that never consolidates has no row.
//! The crate `learning` does the work.

use serde::{Deserialize, Serialize};

use super::learn_failure::LearnFailure;
use super::learn_settings::IDLE_MS;
use super::learn_settings::{ConsolidationTrigger, LearnSettings};
use super::stored::{CONSOLIDATION, find_stored, write_stored};
use base::database::Database;
use base::error::Result;
use base::json;

/// The pause between automatic consolidations: a day. A block of 1,000 entries takes ten
/// steps, about 70,000 tokens.
pub const PAUSE_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consolidation {
    /// The block that is being consolidated, by its label in lower case. `None`: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The entries with numbers below this remain.
    pub below: i64,
    /// The number of steps so far, by which concurrent steps detect each other.
    pub steps: i64,
    /// When the next automatic step is due. `None`: nothing has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<i64>,
    /// When the block of learned facts was last consolidated. `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Why the last automatic step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<LearnFailure>,
}

/// The stored state. If it can't be read, consolidation starts again, which only repeats
/// work.
pub fn find_consolidation(db: &dyn Database) -> Result<Consolidation> {
    let stored = find_stored(db, CONSOLIDATION)?;
    Ok(stored
        .and_then(|stored| json::decode(&stored).ok())
        .unwrap_or_default())
}

pub fn write_consolidation(db: &dyn Database, state: &Consolidation) -> Result<()> {
    write_stored(db, CONSOLIDATION, state)
}

/// Schedules a consolidation for when the agent is idle, if its settings require it. Called
/// after a write to the block, or a learned change. Must run in that change's transaction.
/// Returns whether the due time changed.
pub fn ask_when_idle(db: &dyn Database, settings: &LearnSettings, now_ms: i64) -> Result<bool> {
    if settings.consolidate != ConsolidationTrigger::Idle {
        return Ok(false);
    }
    let state = find_consolidation(db)?;
    // An end in the future was written before the clock was set back.
    let ended_at = state.ended_at.map(|ended_at| ended_at.min(now_ms));
    let soonest = ended_at.map_or(0, |ended_at| ended_at + PAUSE_MS);
    let due_at = Some((now_ms + IDLE_MS).max(soonest));
    if state.due_at == due_at {
        return Ok(false);
    }
    write_consolidation(db, &Consolidation { due_at, ..state })?;
    Ok(true)
}
