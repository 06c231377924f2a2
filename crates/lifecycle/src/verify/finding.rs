//! A finding of a check: a code, and the place of the damaged row. Never the row's content.

use serde::{Deserialize, Serialize};

/// The rule that a row breaks. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The rows' session is not there. Said of the first of them.
    RowsWithoutSession,
    /// The event's id leads to no row, so reads by this id miss the event.
    EventUnreachable,
    /// Another event of the session has the same id.
    EventIdTwice,
    /// A column of the event is not the JSON that it must be.
    EventDamaged,
    /// The event follows an event that is not there.
    ParentMissing,
    /// The event follows itself, or an event that was written later.
    ParentNotBefore,
    /// The event names its parent by another id than the parent has.
    ParentIdWrong,
    /// The event begins a branch and does not say so, so reads miss the branch.
    BranchUnmarked,
    /// A part of the event's long text is missing.
    SlicesIncomplete,
    /// A part of a long text that no event has.
    SliceStray,
    /// The session's chosen leaf is not there.
    LeafMissing,
    /// A column of the session is not the JSON that it must be.
    SessionDamaged,
    /// A change stands after the session's next append, so a follower of the feed would miss
    /// that append.
    ChangeAhead,
    /// The event shows media that is not stored.
    MediaMissing,
    /// The event's use of media is not noted, so the media may go before the event does.
    MediaUseMissing,
    /// A use of media by an event that does not show it.
    MediaUseStray,
    /// Media that no event uses.
    MediaUnused,
    /// Stored media is not what its hash says, or a part of it is missing.
    MediaDamaged,
    /// The event is not in the index of words, so searches miss it.
    IndexMissing,
    /// A row of the index of words that no event or entry has.
    IndexStray,
    /// A vector of an event or an entry that is not there.
    VectorStray,
    /// The first or the last event of the summary's range is not there.
    OverlayEdgeMissing,
    /// The events of the summary's range do not lie on one path.
    OverlayOffPath,
    /// The summary's range follows another event than its first event does.
    OverlayAboveWrong,
    /// A column of the block's definition is not the JSON that it must be.
    BlockDamaged,
    /// The version's number is below 1.
    VersionNumberWrong,
    /// The note of an entry's, a document's or a version's writer is not the JSON that it must be.
    NoteDamaged,
    /// The version stands where another version belongs.
    VersionMisplaced,
    /// An earlier version has the number of the newest or a higher one.
    VersionNotNewest,
    /// The block's entries or its deleted items are counted wrong.
    CountsWrong,
    /// The entry has a number that is not its block's, so searches in the block miss it.
    EntryNumberWrong,
    /// It is not noted that the entry replaces another.
    ReplacementMissing,
    /// A note that an entry replaces another, although it does not.
    ReplacementStray,
    /// A column of the frozen prompt is not the JSON that it must be.
    PromptDamaged,
    /// The stored turn or the record of a failed one is not JSON, so it can't be taken up or
    /// shown.
    TurnDamaged,
    /// A part of a waiting message or of an early answer is missing.
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
            Self::RowsWithoutSession => "Rows of a session that is not there.",
            Self::EventUnreachable => "The event's id leads to no row.",
            Self::EventIdTwice => "Another event of the session has the same id.",
            Self::EventDamaged => "A column of the event is not the JSON that it must be.",
            Self::ParentMissing => "The event follows an event that is not there.",
            Self::ParentNotBefore => "The event follows an event that is not before it.",
            Self::ParentIdWrong => "The event names its parent by a wrong id.",
            Self::BranchUnmarked => "The event begins a branch and is not marked so.",
            Self::SlicesIncomplete => "A part of the event's long text is missing.",
            Self::SliceStray => "A part of a long text belongs to no event.",
            Self::LeafMissing => "The session's chosen leaf is not there.",
            Self::SessionDamaged => "A column of the session is not the JSON that it must be.",
            Self::ChangeAhead => "A change stands after the session's next append.",
            Self::MediaMissing => "The event shows media that is not stored.",
            Self::MediaUseMissing => "The event's use of media is not noted.",
            Self::MediaUseStray => "A use of media is noted for an event that does not show it.",
            Self::MediaUnused => "No event uses this media.",
            Self::MediaDamaged => "The media is not what its hash says, or not whole.",
            Self::IndexMissing => "The index of words does not have this row.",
            Self::IndexStray => "The index of words has a row that belongs to nothing.",
            Self::VectorStray => "A vector belongs to nothing.",
            Self::OverlayEdgeMissing => "An end of the summary's range is not there.",
            Self::OverlayOffPath => "The summary's range does not lie on one path.",
            Self::OverlayAboveWrong => "The summary's range follows a wrong event.",
            Self::BlockDamaged => "A column of the block is not the JSON that it must be.",
            Self::VersionNumberWrong => "The version's number is below 1.",
            Self::NoteDamaged => "What is noted of the writer is not the JSON that it must be.",
            Self::VersionMisplaced => "The version stands where another one belongs.",
            Self::VersionNotNewest => "An earlier version has this number or a higher one.",
            Self::CountsWrong => "The block's entries or deleted items are counted wrong.",
            Self::EntryNumberWrong => "The entry's number is not one of its block's.",
            Self::ReplacementMissing => "It is not noted which entry this entry replaces.",
            Self::ReplacementStray => "An entry is noted to replace another, and does not.",
            Self::PromptDamaged => "A column of the prompt is not the JSON that it must be.",
            Self::TurnDamaged => "The stored turn is not JSON.",
            Self::WaitingIncomplete => "A part of what waits is missing.",
            Self::CallbackDamaged => "The report of a turn's end is not JSON.",
            Self::ProposalDamaged => "A column of the proposal is not the JSON that it must be.",
            Self::SettingDamaged => "The setting is not JSON.",
            Self::ToolDamaged => "A column of the tool is not the JSON that it must be.",
        }
    }
}

/// The place of a damaged row: the ids that name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct Finding {
    pub code: FindingCode,
    /// The same as a sentence.
    message: &'static str,
    /// The table that the row stands in; docs/storage.md describes the tables.
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
