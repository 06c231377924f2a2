//! How `verify` checks a table: the rules that each row must keep, as SQL. The crate that owns a
//! table has its check, in a file `checks.rs`. `lifecycle/verify/` runs them.

use crate::schema::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most rows that one statement checks.
pub const PAGE_ROWS: i64 = 500;

/// The owner of a table's rows.
#[derive(Clone, Copy)]
pub enum RowsOwner {
    /// This column has the session, or is empty in rows of the agent.
    Column(&'static str),
    /// Like `Column`, but no index finds the rows of a session: a check of one session omits the
    /// table.
    Unindexed(&'static str),
    /// The session's rows are a range of keys: SQL on a row `t`. `?s` is the session's id.
    Range(&'static str),
    /// The agent's, or not distinguishable: a check of one session omits the table.
    Agent,
}

/// A rule, as SQL on a row `t` that is true if the row breaks it. Names with a colon are
/// placeholders for constants (`lifecycle/verify/check.rs`).
pub struct RowRule(pub FindingCode, pub &'static str);

/// A check of the rows of a page that SQL can't make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeeperCheck {
    /// Media matches its hash.
    MediaHashes,
    /// A summary's range lies on one path.
    SummaryPaths,
}

/// How a table is checked.
pub struct Check {
    pub table: &'static str,
    /// The columns of the primary key, in its order.
    pub key: &'static [&'static str],
    pub owner: RowsOwner,
    /// SQL: the position of a row `t`, as the JSON of a [`FindingLocation`].
    pub location: &'static str,
    /// SQL: how many bytes the rules read of a row `t`.
    pub length: &'static str,
    pub page_rows: i64,
    pub rules: &'static [RowRule],
    pub deeper: Option<DeeperCheck>,
}

/// The defaults for the check of one of the agent's tables.
pub const OF_AGENT: Check = Check {
    table: "",
    key: &[],
    owner: RowsOwner::Agent,
    location: "'{}'",
    length: "0",
    page_rows: PAGE_ROWS,
    rules: &[],
    deeper: None,
};

/// The defaults for the check of a table whose rows belong to sessions.
pub const OF_SESSION: Check = Check {
    owner: RowsOwner::Column("session_id"),
    location: "json_object('sessionId', t.session_id)",
    ..OF_AGENT
};

/// The rule that a row breaks. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The rows' session doesn't exist. Reported for the first of them.
    RowsWithoutSession,
    /// The event's id leads to no row, so reads by this id miss the event.
    EventUnreachable,
    /// Another event of the session has the same id.
    EventIdTwice,
    /// A column of the event is not the JSON that it must be.
    EventDamaged,
    /// The event follows an event that doesn't exist.
    ParentMissing,
    /// The event follows itself, or an event that was written later.
    ParentNotBefore,
    /// The event has a wrong id for its parent.
    ParentIdWrong,
    /// The event starts a branch but is not marked as such, so reads miss the branch.
    BranchUnmarked,
    /// The event is marked wrongly as the beginning of a message within a run, or is not marked.
    BoundaryWrong,
    /// The stored number of messages up to the event is wrong.
    TotalsWrong,
    /// A part of the event's long text is missing.
    SlicesIncomplete,
    /// A part of a long text that no event has.
    SliceStray,
    /// The session's chosen leaf doesn't exist.
    LeafMissing,
    /// The digest of a history leads to an event that can't be the history's end, so a client of
    /// a provider's API would continue in the wrong place.
    PathEndWrong,
    /// A column of the session is not the JSON that it must be.
    SessionDamaged,
    /// A change comes after the session's next append, so a follower of the feed would miss
    /// that append.
    ChangeAhead,
    /// The event shows media that is not stored.
    MediaMissing,
    /// The event's use of media is not recorded, so the media may be deleted before the
    /// event.
    MediaUseMissing,
    /// A recorded use of media by an event that does not show it.
    MediaUseStray,
    /// Media that no event uses.
    MediaUnused,
    /// Stored media doesn't match its hash, or a part of it is missing.
    MediaDamaged,
    /// The event is not in the word index, so searches miss it.
    IndexMissing,
    /// A row of the word index without an event or entry.
    IndexStray,
    /// A vector of an event or an entry that doesn't exist.
    VectorStray,
    /// The first or the last event of the summary's range doesn't exist.
    OverlayEdgeMissing,
    /// The events of the summary's range are not on one path.
    OverlayOffPath,
    /// The event before the summary's range is recorded wrongly.
    OverlayAboveWrong,
    /// A column of the block's definition is not the JSON that it must be.
    BlockDamaged,
    /// The version's number is below 1.
    VersionNumberWrong,
    /// The record of the writer of an entry, a document or a version is not valid JSON.
    NoteDamaged,
    /// The version is stored in the place of another version.
    VersionMisplaced,
    /// An earlier version has the number of the newest or a higher one.
    VersionNotNewest,
    /// The count of the block's entries or deleted items is wrong.
    CountsWrong,
    /// The entry has a number that is not its block's, so searches in the block miss it.
    EntryNumberWrong,
    /// It is not recorded that the entry replaces another.
    ReplacementMissing,
    /// A record that an entry replaces another, although it does not.
    ReplacementStray,
    /// A column of the frozen prompt is not the JSON that it must be.
    PromptDamaged,
    /// The stored turn or the record of a failed one is not valid JSON, so it can't be
    /// resumed or shown.
    TurnDamaged,
    /// A part of a queued message or of an early answer is missing.
    WaitingIncomplete,
    /// The report of a turn's end is not JSON.
    CallbackDamaged,
    /// A column of the proposal is not the JSON that it must be.
    ProposalDamaged,
    /// A value of the agent's configuration is not JSON.
    SettingDamaged,
    /// A column of the tool's definition is not the JSON that it must be.
    ToolDamaged,
}

impl FindingCode {
    /// A sentence that describes the finding.
    pub fn message(self) -> &'static str {
        match self {
            Self::RowsWithoutSession => "Rows of a session that doesn't exist.",
            Self::EventUnreachable => "The event's id leads to no row.",
            Self::EventIdTwice => "Another event of the session has the same id.",
            Self::EventDamaged => "A column of the event is not valid JSON.",
            Self::ParentMissing => "The event's parent doesn't exist.",
            Self::ParentNotBefore => "The event's parent comes after it in the log.",
            Self::ParentIdWrong => "The event's parent id is wrong.",
            Self::BranchUnmarked => "The event starts a branch but is not marked as such.",
            Self::BoundaryWrong => {
                "The event is marked wrongly as the beginning of a message, or is not marked."
            }
            Self::TotalsWrong => "The stored number of messages up to the event is wrong.",
            Self::SlicesIncomplete => "A part of the event's long text is missing.",
            Self::SliceStray => "A part of a long text belongs to no event.",
            Self::LeafMissing => "The session's chosen leaf doesn't exist.",
            Self::PathEndWrong => "The digest of a history leads to a wrong event.",
            Self::SessionDamaged => "A column of the session is not valid JSON.",
            Self::ChangeAhead => "A change comes after the session's next append.",
            Self::MediaMissing => "The event shows media that is not stored.",
            Self::MediaUseMissing => "The event's use of media is not recorded.",
            Self::MediaUseStray => "A use of media is recorded for an event that does not show it.",
            Self::MediaUnused => "No event uses this media.",
            Self::MediaDamaged => "The media does not match its hash, or is incomplete.",
            Self::IndexMissing => "The word index does not have this row.",
            Self::IndexStray => "The word index has a row without an event or entry.",
            Self::VectorStray => "A vector has no event or entry.",
            Self::OverlayEdgeMissing => "An end of the summary's range doesn't exist.",
            Self::OverlayOffPath => "The summary's range is not on one path.",
            Self::OverlayAboveWrong => "The event before the summary's range is recorded wrongly.",
            Self::BlockDamaged => "A column of the block is not valid JSON.",
            Self::VersionNumberWrong => "The version's number is below 1.",
            Self::NoteDamaged => "The record of the writer is not valid JSON.",
            Self::VersionMisplaced => "The version is stored in the place of another version.",
            Self::VersionNotNewest => "An earlier version has this number or a higher one.",
            Self::CountsWrong => "The count of the block's entries or deleted items is wrong.",
            Self::EntryNumberWrong => "The entry's number is not one of its block's.",
            Self::ReplacementMissing => "It is not recorded which entry this entry replaces.",
            Self::ReplacementStray => "An entry is recorded as a replacement, but isn't one.",
            Self::PromptDamaged => "A column of the prompt is not valid JSON.",
            Self::TurnDamaged => "The stored turn is not JSON.",
            Self::WaitingIncomplete => "A part of a queued message or answer is missing.",
            Self::CallbackDamaged => "The report of a turn's end is not valid JSON.",
            Self::ProposalDamaged => "A column of the proposal is not valid JSON.",
            Self::SettingDamaged => "The setting is not JSON.",
            Self::ToolDamaged => "A column of the tool is not valid JSON.",
        }
    }
}

/// SQL: whether the row `t` of this table is a later part of a text whose part before it is
/// missing.
#[macro_export]
macro_rules! is_part_lost {
    ($table:literal) => {
        concat!(
            "(t.part > 1
              AND NOT EXISTS (SELECT 1
                                FROM ",
            $table,
            " AS before
                               WHERE before.session_id = t.session_id
                                 AND before.number = t.number
                                 AND before.part = t.part - 1))"
        )
    };
}

/// SQL: whether the column of a row `t` contains something else than JSON. A missing value does not
/// count.
#[macro_export]
macro_rules! is_invalid_json {
    ($column:literal) => {
        concat!("NOT json_valid(coalesce(", $column, ", 'null'))")
    };
}
