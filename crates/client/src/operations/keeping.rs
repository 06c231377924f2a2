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
    /// The number of this agent's newest backups that stay in the bucket. Left out: all.
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
/// must be empty: `destroy` empties one.
///
/// A long restore goes on when its caller gives up: the same call, sent again, waits for it and
/// gets its answer. One that broke off is repeated with the same call, and skips what is there.
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

/// Checks whether what the agent stores holds together, and names what is wrong: events, branches,
/// summaries, media, the index of words, memory, its versions and its counts.
///
/// It only reads. A request checks a bounded part of the tables: ask again with the answer's
/// `cursor` until it is `null`. A finding names a row by its ids and never shows what the row
/// holds. Homes outside this agent are not checked.
///
/// A token that is narrowed to a session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Check this session's rows alone.
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
