//! How far consolidation has come, and when it is due by itself: one value of
//! `cf_agents_config`, written with each step. An agent that never consolidates has no row.
//! The district `learning` does the work.

use serde::{Deserialize, Serialize};

use super::learn_failure::LearnFailure;
use super::learn_settings::IDLE_MS;
use super::learn_settings::{LearnOrder, LearnSettings};
use super::stored::{CONSOLIDATION, find_stored, write_stored};
use base::database::Database;
use base::error::Result;
use base::json;

/// From the end of one consolidation to the beginning of the next by itself: a day. A block of
/// 1,000 entries takes ten steps, some 70,000 tokens.
pub const PAUSE_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consolidation {
    /// The block whose steps are under way, by its label in lower case. `None`: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The entries below this number are left.
    pub below: i64,
    /// The number of steps so far. Of two steps at once, one finds that it has moved.
    pub steps: i64,
    /// When the next step is due by itself. `None`: nothing has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<i64>,
    /// When the block that is learnt into was last gone through. `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Why the last step that was due by itself failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<LearnFailure>,
}

/// The state. One that can't be read begins anew: its steps only save work.
pub fn find_consolidation(db: &dyn Database) -> Result<Consolidation> {
    let stored = find_stored(db, CONSOLIDATION)?;
    Ok(stored
        .and_then(|stored| json::decode(&stored).ok())
        .unwrap_or_default())
}

pub fn write_consolidation(db: &dyn Database, state: &Consolidation) -> Result<()> {
    write_stored(db, CONSOLIDATION, state)
}

/// Has the block be put in order when the agent is idle, if its settings say so. Called when
/// somebody has written into it, or what was learnt has changed it. Part of that change's
/// transaction. Returns whether it is due at another time now.
pub fn ask_when_idle(db: &dyn Database, settings: &LearnSettings, now_ms: i64) -> Result<bool> {
    if settings.consolidate != LearnOrder::Idle {
        return Ok(false);
    }
    let state = find_consolidation(db)?;
    // An end that lies ahead was written before the clock went back.
    let ended_at = state.ended_at.map(|ended_at| ended_at.min(now_ms));
    let soonest = ended_at.map_or(0, |ended_at| ended_at + PAUSE_MS);
    let due_at = Some((now_ms + IDLE_MS).max(soonest));
    if state.due_at == due_at {
        return Ok(false);
    }
    write_consolidation(db, &Consolidation { due_at, ..state })?;
    Ok(true)
}
