//! Keeping and copies.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::keeping_shapes::{
    BackupList, BackupPlace, BookmarkOfTime, BookmarkRestored, ImportedAgent, RetentionApplied,
    Verified, WrittenBackup,
};
use super::later_shapes::Retention;
use crate::operation::Operation;

/// Deletes some of the data that is older than the agent's `retention` allows, and returns whether
/// more is left. The agent does this automatically once a day.
///
/// With `dryRun`, nothing is deleted: the answer counts what would be deleted. A dry run reads at
/// most 20,000 rows; beyond them, `complete` is `false` and the counts are minimums. It can be
/// limited to a session or a block, and can try rules that are not set.
///
/// Requires the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ApplyRetention {
    /// From the previous call, with `sessionId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// With `dryRun`: only this block, of the session or else of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Rules for this call, instead of the stored ones. Without `dryRun`, this requires a
    /// session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Only this session. Without `dryRun`, its old parts are deleted in one or more calls:
    /// the next one continues at the answer's `cursor`. Pinned sessions are not changed.
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

/// Writes the whole agent as a file to the bucket `BACKUP_BUCKET`, and returns when the file is
/// complete. To restore it, import it into an empty agent.
///
/// Requires the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// The number of this agent's newest backups to retain in the bucket. If omitted: all.
    /// Default: `7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<i64>,
    /// Only `r2`.
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

/// Lists the backups of this agent in the bucket `BACKUP_BUCKET`, newest first, at most a thousand,
/// and the time of the next scheduled one.
///
/// Requires the secret.
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
/// must be empty; to empty it, use `destroy`.
///
/// A long restore continues if its caller disconnects. If you repeat the call, it waits for the
/// running restore and returns its answer. If a restore was interrupted, repeat the call: it skips
/// what is already there.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RestoreBackup {
    /// The key in the bucket, from `listBackups`.
    pub key: String,
    /// As in an import: accept the `source` of blocks, MCP servers and frozen prompts from
    /// the backup.
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

/// Returns a bookmark of the whole agent's state, now or at a time within the last 30 days, which
/// `restoreBookmark` can restore.
///
/// Requires the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBookmark {
    /// The time, in milliseconds since the epoch. Default: now.
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

/// Restores the state of a bookmark, with all sessions, memory and settings of that time.
/// Everything newer is lost. The answer's `undo` is a bookmark that restores the current state.
///
/// The agent restarts right after the answer. Running turns end, and sockets are closed. If the
/// bookmark is older than a purge, the purge is undone, too.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RestoreBookmark {
    /// The bookmark from `getBookmark`.
    pub bookmark: String,
    /// The agent's name, as a confirmation.
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

/// Checks whether the agent's stored data is consistent, and lists what is wrong: events, branches,
/// summaries, media, the word index, memory, its versions and its counts.
///
/// It only reads. Each request checks a limited part of the tables: repeat it with the answer's
/// `cursor` until that is `null`. A finding identifies a row by its ids and never shows its
/// content. Data stored outside this agent is not checked.
///
/// A token for one session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Check only this session's rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl Verify {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Verify:
    cursor: impl Into<String>;
    session_id: impl Into<String>;
}

impl Operation for Verify {
    type Output = Verified;
    const NAME: &'static str = "verify";
    const READS: bool = true;
}
