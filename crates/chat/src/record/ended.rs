//! The record of a turn that is over, as it is stored.

use serde::{Deserialize, Serialize};

use super::{RecordedFailure, TurnFinish, TurnRecord};

/// The record of a turn that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndedRecord {
    /// The id by which clients knew the turn.
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

/// The facts that a turn tells beside its record, and the record: the value of `ends_turn`, and of a
/// kept turn's row.
#[derive(Serialize)]
pub struct ToldWithRecord<'a, T> {
    #[serde(flatten)]
    pub told: &'a T,
    pub record: &'a EndedRecord,
}
