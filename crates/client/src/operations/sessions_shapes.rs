//! Sessions: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::shapes::{Erased, HomeReceipt, Retention};
use crate::Object;

/// Why the last attempt to compact failed. Removed when an attempt succeeds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LastCompactionError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// How many attempts have failed in a row.
    pub attempts: i64,
    /// The newest event's `seq` at the time of the failure.
    pub seq: i64,
}

/// A session as the API shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    /// The agent's name.
    pub agent_id: String,
    pub name: Option<String>,
    pub parent_session_id: Option<String>,
    pub created_at: i64,
    /// Changes with every write to the session, appends included.
    pub updated_at: i64,
    pub metadata: Option<Object>,
    pub usage: SessionUsage,
    /// `listSessions` only: the stored metadata is damaged and shown as `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<bool>,
    /// Present while the last attempt to compact is a failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_compaction_error: Option<LastCompactionError>,
    /// Present where it is `true`: retention deletes nothing of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// How long the session's texts are kept, where the session has rules of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Present where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// What `listSessions` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    pub sessions: Vec<Session>,
    pub cursor: Option<String>,
}

/// A part of `Session`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost: f64,
    /// The input tokens that the provider had cached; absent if no provider reported any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<i64>,
}

/// One turn, day or model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UsageEntry {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `inputTokens` that providers read from their caches.
    pub cached_input_tokens: i64,
    /// By the agent's `prices`, and as reported.
    pub cost: f64,
    /// When the day began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<i64>,
    /// When the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The first event of the turn's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// How many of these turns failed, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_turns: Option<i64>,
    /// Whether the turn failed, by turn. A turn that failed before it said anything has no
    /// entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_failed: Option<bool>,
    /// The model, by turn and by model; `null`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The turn's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How many turns ended, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<i64>,
}

words! {
    /// How usage is grouped.
    pub enum UsageGrouping {
        /// Each turn that ended with an answer, newest first.
        Turn = "turn",
        /// Each day with usage, newest first. Days begin at midnight UTC.
        Day = "day",
        /// Each model, the one with the most tokens first.
        Model = "model",
    }
}

/// What `getUsage` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UsagePage {
    pub usage: Vec<UsageEntry>,
    /// `null` at the end.
    pub cursor: Option<String>,
}

/// What a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WasDeleted {
    /// `false`: there was no such session.
    pub deleted: bool,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// What the home that holds the block answered. Absent: the text lived in this agent
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeReceipt>,
    /// The operation that erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}
