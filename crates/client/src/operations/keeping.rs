//! Keeping and copies.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Deletes some of what is older than the agent's `retention` says, and says whether more is left.
/// The agent does the same by itself, once a day.
///
/// With `dryRun`, nothing is deleted: the answer counts what would go. A dry run looks at 20,000
/// rows at most; beyond them, `complete` is `false` and the counts are the least.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ApplyRetention {
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

impl ApplyRetention {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ApplyRetention:
    dry_run: bool;
}

impl Operation for ApplyRetention {
    type Output = RetentionApplied;
    const NAME: &'static str = "applyRetention";
    const READS: bool = false;
}

/// Writes the whole agent as a file into the bucket `BACKUP_BUCKET`. The answer comes when the file
/// is there. To restore it, import it into an empty agent.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// How many of this agent's backups stay in the bucket, the newest. Left out: all.
    /// Default: `7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<i64>,
    /// `r2` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BackupPlace>,
}

impl Backup {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Backup:
    keep: i64;
    to: BackupPlace;
}

impl Operation for Backup {
    type Output = WrittenBackup;
    const NAME: &'static str = "backup";
    const READS: bool = false;
}

/// Lists the backups of this agent in the bucket `BACKUP_BUCKET`, the newest first, at most a
/// thousand.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListBackups {}

impl ListBackups {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Operation for ListBackups {
    type Output = BackupList;
    const NAME: &'static str = "listBackups";
    const READS: bool = false;
}

/// What `listBackups` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupList {
    pub backups: Vec<ListedBackup>,
}

words! {
    /// Where a backup is written to.
    pub enum BackupPlace {
        R2 = "r2",
    }
}

/// How many of one kind, and the time of the oldest.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct KindCount {
    /// Default: `0`.
    pub count: i64,
    /// When the oldest of them was last written, in milliseconds since the epoch.
    pub oldest_at: Option<i64>,
}

/// A run that came to its end.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LastRetentionRun {
    /// Default: `0`.
    pub started_at: i64,
    /// Default: `0`.
    pub ended_at: i64,
    /// The transactions that the run took.
    /// Default: `0`.
    pub steps: i64,
    /// Default:
    /// `{"deleted":{"count":0,"oldestAt":null},"entries":{"count":0,"oldestAt":null},"events":{"count":0,"oldestAt":null},"runs":{"count":0,"oldestAt":null},"sessions":{"count":0,"oldestAt":null},"summaries":{"count":0,"oldestAt":null},"versions":{"count":0,"oldestAt":null}}`.
    pub gone: RetentionCounts,
    /// Sessions that were left out, because a row could not be read. The next run tries them
    /// again.
    /// Default: `0`.
    pub skipped: i64,
}

/// A part of `BackupList`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListedBackup {
    pub key: String,
    pub bytes: i64,
    /// When the backup began.
    pub at: i64,
}

/// What `applyRetention` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RetentionApplied {
    pub dry_run: bool,
    /// What this step deleted, or what would be deleted.
    pub gone: RetentionCounts,
    /// Whether all was looked at. If not, another call goes on; of a dry run, the counts are
    /// the least.
    pub complete: bool,
    /// The last run that came to its end.
    pub last_run: Option<LastRetentionRun>,
    /// When the next run begins by itself; `null`: no rule is set.
    pub next_run_at: Option<i64>,
}

/// How many of each kind a run deleted, or a dry run would delete.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RetentionCounts {
    /// Whole sessions that nobody wrote to.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub sessions: KindCount,
    /// Events of sessions that stay.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub events: KindCount,
    /// Summaries that covered such events.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub summaries: KindCount,
    /// Checkpoints of LangGraph threads, with the values that only they used.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub runs: KindCount,
    /// Earlier versions of blocks, entries and documents.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub versions: KindCount,
    /// Deleted entries and documents whose last traces went.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub deleted: KindCount,
    /// Default: `{"count":0,"oldestAt":null}`.
    pub entries: KindCount,
}

/// A backup that is in the bucket.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WrittenBackup {
    /// The key in the bucket. It begins with the agent's name, `%`-encoded.
    pub key: String,
    pub bytes: i64,
    pub sessions: i64,
    /// When the backup began.
    pub at: i64,
    /// How many older backups were deleted.
    pub deleted: i64,
}
