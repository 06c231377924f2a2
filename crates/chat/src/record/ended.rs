//! The record of a finished turn, in its stored form.

use serde::{Deserialize, Serialize};

use super::{RecordedFailure, TurnFinish, TurnRecord};

/// The record of a finished turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndedRecord {
    /// The request id by which clients identify the turn.
    pub request_id: String,
    pub ended_at: i64,
    pub finish_reason: TurnFinish,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
    /// The message that the turn wrote or continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(flatten)]
    pub turn: TurnRecord,
}

/// Additional facts about a turn, together with its record: the value of `ends_turn`, and
/// of a stored turn's row.
#[derive(Serialize)]
pub struct FactsWithRecord<'a, T> {
    #[serde(flatten)]
    pub facts: &'a T,
    pub record: &'a EndedRecord,
}
