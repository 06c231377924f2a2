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
    /// The place to which a backup is written.
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

/// A damaged row.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: FindingCode,
    /// The same as a sentence.
    pub message: String,
    /// The table that the row stands in; docs/storage.md describes the tables.
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
        /// The rows' session is not there. Said of the first of them.
        RowsWithoutSession = "rows_without_session",
        /// The event's id leads to no row, so reads by this id miss the event.
        EventUnreachable = "event_unreachable",
        /// Another event of the session has the same id.
        EventIdTwice = "event_id_twice",
        /// A column of the event is not the JSON that it must be.
        EventDamaged = "event_damaged",
        /// The event follows an event that is not there.
        ParentMissing = "parent_missing",
        /// The event follows itself, or an event that was written later.
        ParentNotBefore = "parent_not_before",
        /// The event names its parent by another id than the parent has.
        ParentIdWrong = "parent_id_wrong",
        /// The event begins a branch and does not say so, so reads miss the branch.
        BranchUnmarked = "branch_unmarked",
        /// A part of the event's long text is missing.
        SlicesIncomplete = "slices_incomplete",
        /// A part of a long text that no event has.
        SliceStray = "slice_stray",
        /// The session's chosen leaf is not there.
        LeafMissing = "leaf_missing",
        /// A column of the session is not the JSON that it must be.
        SessionDamaged = "session_damaged",
        /// A change stands after the session's next append, so a follower of the feed would miss
        /// that append.
        ChangeAhead = "change_ahead",
        /// The event shows media that is not stored.
        MediaMissing = "media_missing",
        /// The event's use of media is not noted, so the media may go before the event does.
        MediaUseMissing = "media_use_missing",
        /// A use of media by an event that does not show it.
        MediaUseStray = "media_use_stray",
        /// Media that no event uses.
        MediaUnused = "media_unused",
        /// Stored media is not what its hash says, or a part of it is missing.
        MediaDamaged = "media_damaged",
        /// The event is not in the index of words, so searches miss it.
        IndexMissing = "index_missing",
        /// A row of the index of words that no event or entry has.
        IndexStray = "index_stray",
        /// A vector of an event or an entry that is not there.
        VectorStray = "vector_stray",
        /// The first or the last event of the summary's range is not there.
        OverlayEdgeMissing = "overlay_edge_missing",
        /// The events of the summary's range do not lie on one path.
        OverlayOffPath = "overlay_off_path",
        /// The summary's range follows another event than its first event does.
        OverlayAboveWrong = "overlay_above_wrong",
        /// A column of the block's definition is not the JSON that it must be.
        BlockDamaged = "block_damaged",
        /// The version's number is below 1.
        VersionNumberWrong = "version_number_wrong",
        /// The note of an entry's, a document's or a version's writer is not the JSON that it must
        /// be.
        NoteDamaged = "note_damaged",
        /// The version stands where another version belongs.
        VersionMisplaced = "version_misplaced",
        /// An earlier version has the number of the newest or a higher one.
        VersionNotNewest = "version_not_newest",
        /// The block's entries or its deleted items are counted wrong.
        CountsWrong = "counts_wrong",
        /// The entry has a number that is not its block's, so searches in the block miss it.
        EntryNumberWrong = "entry_number_wrong",
        /// It is not noted that the entry replaces another.
        ReplacementMissing = "replacement_missing",
        /// A note that an entry replaces another, although it does not.
        ReplacementStray = "replacement_stray",
        /// A column of the frozen prompt is not the JSON that it must be.
        PromptDamaged = "prompt_damaged",
        /// The stored turn or the record of a failed one is not JSON, so it can't be taken up or
        /// shown.
        TurnDamaged = "turn_damaged",
        /// A part of a waiting message or of an early answer is missing.
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
    /// The number of sessions that were there already.
    pub skipped: i64,
    /// The number of the sessions' events.
    pub events: i64,
    /// The parts of the file that this import left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
    /// The tools that this Worker can't reach: their service is not bound, or their origin is
    /// not in `TOOL_ORIGINS`. A call of such a tool fails until the Worker is configured for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_unavailable: Option<Vec<String>>,
    /// The tools with a header whose value the file does not hold. A call of such a tool
    /// fails until `defineTool` defines it again.
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
    /// Whether all was looked at. If not, another call goes on; of a dry run, the counts are
    /// the least.
    pub complete: bool,
    /// The last run that came to its end.
    pub last_run: Option<LastRetentionRun>,
    /// The time when the next run begins by itself; `null`: no rule is set.
    pub next_run_at: Option<i64>,
    /// With `sessionId`: where the next call begins. `null`: all was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The number of items of each kind that a run deleted, or that a dry run would delete.
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

/// What `verify` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The faults among the rows that this request checked. Empty: there are none.
    pub findings: Vec<Finding>,
    /// The number of rows that this request checked.
    pub checked: i64,
    /// The place where the next request goes on. `null`: all is checked.
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
