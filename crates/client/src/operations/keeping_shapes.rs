//! Keeping and copies: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::shapes::LeftOut;

/// What `listBackups` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupList {
    pub backups: Vec<ListedBackup>,
    /// The time when the next scheduled backup begins; `null`: the agent has no schedule.
    pub next_at: Option<i64>,
    /// The reason why the last scheduled backup failed, as a sentence. Absent: it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

words! {
    /// Where to write a backup.
    pub enum BackupPlace {
        R2 = "r2",
    }
}

/// What `getBookmark` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BookmarkOfTime {
    /// The platform's bookmark of the state.
    pub bookmark: String,
    pub at: i64,
}

/// What `restoreBookmark` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BookmarkRestored {
    pub restored: bool,
    /// The bookmark of the previous state.
    pub undo: String,
}

/// A damaged row.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: FindingCode,
    /// The same as a sentence.
    pub message: String,
    /// The table of the row; docs/storage.md describes the tables.
    pub table: String,
    /// The id of the event, the summary, the media, the proposal, the setting or the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The entry or the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The block, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The event's `seq`, or the row's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// The session that the row belongs to. Absent: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

words! {
    /// The rule that a row breaks. The codes are stable.
    pub enum FindingCode {
        /// The rows' session doesn't exist. Reported for the first of them.
        RowsWithoutSession = "rows_without_session",
        /// The event's id leads to no row, so reads by this id miss the event.
        EventUnreachable = "event_unreachable",
        /// Another event of the session has the same id.
        EventIdTwice = "event_id_twice",
        /// A column of the event is not the JSON that it must be.
        EventDamaged = "event_damaged",
        /// The event follows an event that doesn't exist.
        ParentMissing = "parent_missing",
        /// The event follows itself, or an event that was written later.
        ParentNotBefore = "parent_not_before",
        /// The event has a wrong id for its parent.
        ParentIdWrong = "parent_id_wrong",
        /// The event starts a branch but is not marked as such, so reads miss the branch.
        BranchUnmarked = "branch_unmarked",
        /// The event is marked wrongly as the beginning of a message within a run, or is not
        /// marked.
        BoundaryWrong = "boundary_wrong",
        /// A part of the event's long text is missing.
        SlicesIncomplete = "slices_incomplete",
        /// A part of a long text that no event has.
        SliceStray = "slice_stray",
        /// The session's chosen leaf doesn't exist.
        LeafMissing = "leaf_missing",
        /// The digest of a history leads to an event that can't be the history's end, so a client
        /// of
        /// a provider's API would continue in the wrong place.
        PathEndWrong = "path_end_wrong",
        /// A column of the session is not the JSON that it must be.
        SessionDamaged = "session_damaged",
        /// A change comes after the session's next append, so a follower of the feed would miss
        /// that append.
        ChangeAhead = "change_ahead",
        /// The event shows media that is not stored.
        MediaMissing = "media_missing",
        /// The event's use of media is not recorded, so the media may be deleted before the
        /// event.
        MediaUseMissing = "media_use_missing",
        /// A recorded use of media by an event that does not show it.
        MediaUseStray = "media_use_stray",
        /// Media that no event uses.
        MediaUnused = "media_unused",
        /// Stored media doesn't match its hash, or a part of it is missing.
        MediaDamaged = "media_damaged",
        /// The event is not in the word index, so searches miss it.
        IndexMissing = "index_missing",
        /// A row of the word index without an event or entry.
        IndexStray = "index_stray",
        /// A vector of an event or an entry that doesn't exist.
        VectorStray = "vector_stray",
        /// The first or the last event of the summary's range doesn't exist.
        OverlayEdgeMissing = "overlay_edge_missing",
        /// The events of the summary's range are not on one path.
        OverlayOffPath = "overlay_off_path",
        /// The event before the summary's range is recorded wrongly.
        OverlayAboveWrong = "overlay_above_wrong",
        /// A column of the block's definition is not the JSON that it must be.
        BlockDamaged = "block_damaged",
        /// The version's number is below 1.
        VersionNumberWrong = "version_number_wrong",
        /// The record of the writer of an entry, a document or a version is not valid JSON.
        NoteDamaged = "note_damaged",
        /// The version is stored in the place of another version.
        VersionMisplaced = "version_misplaced",
        /// An earlier version has the number of the newest or a higher one.
        VersionNotNewest = "version_not_newest",
        /// The count of the block's entries or deleted items is wrong.
        CountsWrong = "counts_wrong",
        /// The entry has a number that is not its block's, so searches in the block miss it.
        EntryNumberWrong = "entry_number_wrong",
        /// It is not recorded that the entry replaces another.
        ReplacementMissing = "replacement_missing",
        /// A record that an entry replaces another, although it does not.
        ReplacementStray = "replacement_stray",
        /// A column of the frozen prompt is not the JSON that it must be.
        PromptDamaged = "prompt_damaged",
        /// The stored turn or the record of a failed one is not valid JSON, so it can't be
        /// resumed or shown.
        TurnDamaged = "turn_damaged",
        /// A part of a queued message or of an early answer is missing.
        WaitingIncomplete = "waiting_incomplete",
        /// The report of a turn's end is not JSON.
        CallbackDamaged = "callback_damaged",
        /// A column of the proposal is not the JSON that it must be.
        ProposalDamaged = "proposal_damaged",
        /// A value of the agent's configuration is not JSON.
        SettingDamaged = "setting_damaged",
        /// A column of the tool's definition is not the JSON that it must be.
        ToolDamaged = "tool_damaged",
    }
}

/// The outcome of an import.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ImportedAgent {
    /// The number of sessions in the file.
    pub sessions: i64,
    /// The number of sessions that this import wrote.
    pub imported: i64,
    /// The number of sessions that existed already.
    pub skipped: i64,
    /// The number of the sessions' events.
    pub events: i64,
    /// The parts of the file that this import left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    /// The tools that this Worker can't reach: their service is not bound, or their origin
    /// is not in `TOOL_ORIGINS`. Calls of such a tool fail until the Worker is configured
    /// for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_unavailable: Option<Vec<String>>,
    /// The tools with a header whose value is not in the file. Calls of such a tool fail
    /// until `defineTool` defines it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_without_headers: Option<Vec<String>>,
}

/// The number of items of one kind, and the time of the oldest.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct KindCount {
    /// Default: `0`.
    pub count: i64,
    /// The time when the oldest of them was last written, in milliseconds since the epoch.
    pub oldest_at: Option<i64>,
}

/// A completed run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LastRetentionRun {
    /// Default: `0`.
    pub started_at: i64,
    /// Default: `0`.
    pub ended_at: i64,
    /// The number of transactions of the run.
    /// Default: `0`.
    pub steps: i64,
    /// Default:
    /// `{"deleted":{"count":0,"oldestAt":null},"entries":{"count":0,"oldestAt":null},"events":{"count":0,"oldestAt":null},"runs":{"count":0,"oldestAt":null},"sessions":{"count":0,"oldestAt":null},"summaries":{"count":0,"oldestAt":null},"versions":{"count":0,"oldestAt":null}}`.
    pub gone: RetentionCounts,
    /// Sessions that were skipped because a row could not be read. The next run retries
    /// them.
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
    /// The time when the backup began.
    pub at: i64,
}

/// What `applyRetention` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RetentionApplied {
    pub dry_run: bool,
    /// The counts of items that this step deleted, or would delete.
    pub gone: RetentionCounts,
    /// Whether everything was covered. If not, another call continues; the counts of a dry
    /// run are then minimums.
    pub complete: bool,
    /// The last completed run.
    pub last_run: Option<LastRetentionRun>,
    /// The time of the next automatic run; `null`: no rule is set.
    pub next_run_at: Option<i64>,
    /// With `sessionId`: where the next call continues. `null`: everything was covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The number of items of each kind that a run deleted, or that a dry run would delete.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RetentionCounts {
    /// Whole idle sessions.
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
    /// Deleted entries and documents whose last versions were deleted.
    /// Default: `{"count":0,"oldestAt":null}`.
    pub deleted: KindCount,
    /// Default: `{"count":0,"oldestAt":null}`.
    pub entries: KindCount,
}

/// What `verify` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The faults among the rows that this request checked. Empty: there are none.
    pub findings: Vec<Finding>,
    /// The number of rows that this request checked.
    pub checked: i64,
    /// Where the next request continues. `null`: everything was checked.
    pub cursor: Option<String>,
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
    /// The time when the backup began.
    pub at: i64,
    /// The number of older backups that were deleted.
    pub deleted: i64,
}
