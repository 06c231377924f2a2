//! Keeping and copies.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::shapes::{LeftOut, Retention};
use crate::operation::Operation;

/// Deletes some of what is older than the agent's `retention` says, and says whether more is left.
/// The agent does the same by itself, once a day.
///
/// With `dryRun`, nothing is deleted: the answer counts what would go. A dry run looks at 20,000
/// rows at most; beyond them, `complete` is `false` and the counts are the least. It may be
/// narrowed to a session or to a block, and may try rules that are not set.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ApplyRetention {
    /// Of the call before, with `sessionId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// With `dryRun`: this block alone, of the session or else of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Rules for this call, instead of those that are set at the place that the call names.
    /// Without `dryRun`, name a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// This session alone. Without `dryRun`, its old parts are deleted in one or more calls:
    /// the answer's `cursor` says where the next one begins. A pinned session stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl ApplyRetention {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ApplyRetention:
    cursor: impl Into<String>;
    dry_run: bool;
    label: impl Into<String>;
    retention: Retention;
    session_id: impl Into<String>;
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
/// thousand, and says when the next one is due.
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

/// Imports a backup of this agent, or of another one, from the bucket `BACKUP_BUCKET`. The agent
/// must be empty: `destroy` empties one. A restore that broke off is repeated with the same call,
/// and goes on.
///
/// Needs the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RestoreBackup {
    /// The key in the bucket, as `listBackups` says it.
    pub key: String,
    /// As of an import: the backup counts with where its blocks and servers of tools live, and
    /// with its frozen prompts.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_sources: Option<bool>,
}

impl RestoreBackup {
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            allow_sources: None,
        }
    }
}

setters! {
    RestoreBackup:
    allow_sources: bool;
}

impl Operation for RestoreBackup {
    type Output = ImportedAgent;
    const NAME: &'static str = "restoreBackup";
    const READS: bool = false;
}

/// Names a state of the whole agent, of now or of a time within the last 30 days, so that
/// `restoreBookmark` can bring it back.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBookmark {
    /// The time, in milliseconds since the epoch. Left out: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
}

impl GetBookmark {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetBookmark:
    at: i64;
}

impl Operation for GetBookmark {
    type Output = BookmarkOfTime;
    const NAME: &'static str = "getBookmark";
    const READS: bool = false;
}

/// Brings back the state that a bookmark names, with all sessions, memory and settings of that
/// time. All that came later is gone. The answer's `undo` is a bookmark that brings the present
/// state back.
///
/// The agent starts anew right after the answer. Turns that run end, and sockets are closed. A
/// purge is undone with everything else, if the bookmark is older.
///
/// Needs the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RestoreBookmark {
    /// As `getBookmark` gave it.
    pub bookmark: String,
    /// The agent's name, which guards against mistakes.
    pub confirm: String,
}

impl RestoreBookmark {
    #[must_use]
    pub fn new(bookmark: impl Into<String>, confirm: impl Into<String>) -> Self {
        Self {
            bookmark: bookmark.into(),
            confirm: confirm.into(),
        }
    }
}

impl Operation for RestoreBookmark {
    type Output = BookmarkRestored;
    const NAME: &'static str = "restoreBookmark";
    const READS: bool = false;
}

/// What `listBackups` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupList {
    pub backups: Vec<ListedBackup>,
    /// When the next one begins by the schedule; `null`: the agent has none.
    pub next_at: Option<i64>,
    /// Why the last one on the schedule is not there, as a sentence. Absent: it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

words! {
    /// Where a backup is written to.
    pub enum BackupPlace {
        R2 = "r2",
    }
}

/// What `getBookmark` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BookmarkOfTime {
    /// The platform's name of the state.
    pub bookmark: String,
    pub at: i64,
}

/// What `restoreBookmark` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BookmarkRestored {
    pub restored: bool,
    /// The bookmark of the state that was left.
    pub undo: String,
}

/// The outcome of an import.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ImportedAgent {
    /// How many sessions the file holds.
    pub sessions: i64,
    /// How many sessions this import wrote.
    pub imported: i64,
    /// How many sessions were there already.
    pub skipped: i64,
    /// The number of the sessions' events.
    pub events: i64,
    /// What the file contains and this import left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    /// The tools with a header whose value the file does not hold. A call of such a tool
    /// fails until `defineTool` defines it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_without_headers: Option<Vec<String>>,
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
    /// With `sessionId`: where the next call begins. `null`: all was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
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
