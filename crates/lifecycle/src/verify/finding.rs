//! A finding of a check: a code and the location of the damaged row, never the row's
//! content.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The sentence for people.
    fn message(self) -> &'static str {
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

/// The place of a damaged row: the ids that name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FindingPlace {
    /// The session that the row belongs to. Absent: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The id of the event, the summary, the media, the proposal, the setting or the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The event's `seq`, or the row's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// The block, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The entry or the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// A damaged row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    pub code: FindingCode,
    /// The same as a sentence.
    message: &'static str,
    /// The table of the row; docs/storage.md describes the tables.
    pub table: &'static str,
    #[serde(flatten)]
    pub place: FindingPlace,
}

impl Finding {
    pub fn new(code: FindingCode, table: &'static str, place: FindingPlace) -> Self {
        Self {
            code,
            message: code.message(),
            table,
            place,
        }
    }
}
