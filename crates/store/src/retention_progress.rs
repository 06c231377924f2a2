//! The progress of retention: one small value of the agent. An agent without retention
//! rules has no such value.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored::{find_stored, write_stored};
use base::database::Database;
use base::error::{Error, Result};
use base::json;

const KEY: &str = "retention";

/// The interval between the starts of two runs.
pub const RUN_EVERY_MS: i64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionProgress {
    /// When the next run may start; 0: immediately.
    pub next_at: i64,
    /// The run in progress.
    pub run: Option<RetentionRun>,
    /// The last completed run.
    pub last: Option<LastRetentionRun>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionRun {
    /// The age of texts is measured from this time, for the whole run.
    pub started_at: i64,
    #[serde(rename = "place")]
    pub position: RetentionPosition,
    pub steps: i64,
    #[serde(rename = "gone")]
    pub counts: RetentionCounts,
    /// The number of sessions that were skipped because a row could not be read.
    pub skipped: i64,
    /// The session that the run will skip, because the last step failed there.
    pub failed_at: Option<i64>,
    /// All sessions were processed, and the indexes remain to be merged.
    pub is_finishing: bool,
}

/// The position at which a run continues: the agent's own memory first, then one session
/// after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPosition {
    /// The session's number; 0: the agent's own memory.
    pub number: i64,
    pub stage: RunStage,
    /// Events up to this `seq` were processed.
    pub after_seq: i64,
    /// The current block; empty before the first.
    pub block: String,
    /// Items of the block up to this key were processed.
    pub key: String,
}

/// The stages of a session. The agent's own memory starts with the fourth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunStage {
    /// Checks whether the session is idle.
    #[default]
    Idle,
    /// Old checkpoints of a LangGraph thread.
    Checkpoints,
    Events,
    BlockVersions,
    ItemVersions,
    Deleted,
    Entries,
    /// Nothing remains here.
    Over,
}

/// The number of items of each kind that a run deleted, or that a dry run would delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RetentionCounts {
    /// Whole idle sessions.
    pub sessions: KindCount,
    /// Events of sessions that stay.
    pub events: KindCount,
    /// Summaries that covered such events.
    pub summaries: KindCount,
    /// Checkpoints of LangGraph threads, with the values that only they used.
    pub runs: KindCount,
    /// Earlier versions of blocks, entries and documents.
    pub versions: KindCount,
    /// Deleted entries and documents whose last versions were deleted.
    pub deleted: KindCount,
    pub entries: KindCount,
}

/// The number of items of one kind, and the time of the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct KindCount {
    pub count: i64,
    /// The time when the oldest of them was last written, in milliseconds since the epoch.
    pub oldest_at: Option<i64>,
}

impl KindCount {
    pub fn add(&mut self, at: i64) {
        self.count += 1;
        self.oldest_at = Some(self.oldest_at.map_or(at, |oldest| oldest.min(at)));
    }

    fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.oldest_at = match (self.oldest_at, other.oldest_at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl RetentionCounts {
    pub fn join(&mut self, other: &Self) {
        self.sessions.join(&other.sessions);
        self.events.join(&other.events);
        self.summaries.join(&other.summaries);
        self.runs.join(&other.runs);
        self.versions.join(&other.versions);
        self.deleted.join(&other.deleted);
        self.entries.join(&other.entries);
    }
}

/// A completed run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LastRetentionRun {
    pub started_at: i64,
    pub ended_at: i64,
    /// The number of transactions of the run.
    pub steps: i64,
    #[serde(rename = "gone")]
    pub counts: RetentionCounts,
    /// Sessions that were skipped because a row could not be read. The next run retries
    /// them.
    pub skipped: i64,
}

impl RetentionProgress {
    /// Whether a run is in progress or due.
    pub fn is_due(&self, now_ms: i64) -> bool {
        // The next run is never further ahead, unless the clock was set back.
        let waits = (now_ms + 1..=now_ms + RUN_EVERY_MS).contains(&self.next_at);
        self.run.is_some() || !waits
    }
}

pub fn find_progress(db: &dyn Database) -> Result<Option<RetentionProgress>> {
    match find_stored(db, KEY)? {
        Some(json) => json::decode(&json)
            .map(Some)
            .map_err(|_| Error::corrupt_row(KEY, "configuration")),
        None => Ok(None),
    }
}

pub fn write_progress(db: &dyn Database, progress: &RetentionProgress) -> Result<()> {
    write_stored(db, KEY, progress)
}

/// Deletes the progress, because no rule is left.
pub fn forget_progress(db: &dyn Database) -> Result<()> {
    db.run("DELETE FROM cf_agents_config WHERE key = ?1", &[KEY.into()])
}

/// Makes the next run due immediately, because rules were set. A run in progress uses the
/// new rules from then on, and another run follows it. Must run in the transaction that
/// sets the rules.
pub fn ask(db: &dyn Database) -> Result<()> {
    let progress = find_progress(db)?;
    if progress
        .as_ref()
        .is_some_and(|progress| progress.next_at == 0)
    {
        return Ok(());
    }
    write_progress(
        db,
        &RetentionProgress {
            next_at: 0,
            ..progress.unwrap_or_default()
        },
    )
}
