//! Sessions: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::{Retention, TurnFinish, TurnUsage};
use super::shapes::{Erased, ErasedNames, HomeReceipt};
use crate::Object;

/// The caller who asked for a turn. Never a token itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AskedBy {
    pub kind: AskerKind,
    /// The name under which the turns of a token with limits are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

words! {
    /// The kind of a caller, as the record of a turn names it.
    pub enum AskerKind {
        /// The holder of the secret, or anybody where the Worker is open.
        Secret = "secret",
        /// The holder of a minted token.
        Token = "token",
    }
}

/// A compaction that shortened the context for a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecord {
    pub started_at: i64,
    pub duration_ms: i64,
    /// Estimated tokens of the conversation. `null`: nothing was compacted.
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
    /// The reason why there is no summary, or none by a model.
    pub failure: Option<RecordedFailure>,
}

/// The parts of a request to a model, in estimated tokens.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ContextRecord {
    /// The frozen prompt, instructions, and loaded documents that no message contains.
    pub system_prompt: i64,
    pub tools: i64,
    pub messages: i64,
    pub reminder: i64,
    pub total: i64,
    /// The maximum number of tokens of such a request.
    pub window_tokens: i64,
    pub sent_messages: i64,
    /// The approximate number of older messages that were neither sent nor part of a sent
    /// summary.
    pub left_out_messages: i64,
    /// The number of messages that were sent shortened.
    pub shortened_messages: i64,
}

/// The reason why the last attempt to compact failed. Removed when an attempt succeeds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LastCompactionError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: i64,
    /// The newest event's `seq` at the time of the failure.
    pub seq: i64,
}

/// The reason why the last attempt to learn failed. Removed when an attempt succeeds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LastLearningError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: i64,
}

/// The reason for a failure: an error code of this Worker, and a sentence.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RecordedFailure {
    pub code: String,
    pub message: String,
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
    /// Present if the last attempt to compact failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_compaction_error: Option<LastCompactionError>,
    /// Present if the last learning pass over the session failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_learning_error: Option<LastLearningError>,
    /// Present if `true`: retention deletes nothing of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The session's own retention rules, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Present if there are any.
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

/// A completed turn.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ShownTurn {
    /// For `getTurn`.
    pub turn_id: String,
    pub session_id: String,
    /// The message that the turn wrote or continued. `null`: there was no output.
    pub message_id: Option<String>,
    /// The client's id of the turn. `null`: unknown.
    pub request_id: Option<String>,
    /// Whether there is a record. For a turn that an older build ended, only its usage and
    /// its end time are known.
    pub is_recorded: bool,
    /// `null`: unknown.
    pub asked_by: Option<AskedBy>,
    /// `null`: unknown.
    pub started_at: Option<i64>,
    pub ended_at: i64,
    /// `null`: unknown.
    pub duration_ms: Option<i64>,
    /// The last model called. `null`: none was.
    pub model: Option<String>,
    pub finish_reason: TurnFinish,
    /// The reason why the turn failed. `null`: it did not fail, or an older build ended it.
    pub failure: Option<RecordedFailure>,
    /// The number of times that the turn resumed after the object crashed.
    pub recoveries: i64,
    pub usage: TurnUsage,
    /// The requests to models, in order.
    pub steps: Vec<StepRecord>,
    /// The number of oldest steps that are left out of `steps`.
    pub omitted_steps: i64,
    /// Compactions that shortened the context during the turn.
    pub compactions: Vec<CompactionRecord>,
    /// The trace of the turn. `null`: it has none.
    pub trace_id: Option<String>,
}

/// One request to a model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    pub started_at: i64,
    /// From the step's start until its request was sent: reading memory from other sources,
    /// building the context, and waiting for capacity.
    pub prepared_ms: i64,
    /// From sending the request to the first part of the answer. `null`: there was no
    /// answer.
    pub time_to_first_token_ms: Option<i64>,
    /// From the step's start to the end of the answer.
    pub duration_ms: i64,
    /// `null`: no request was sent.
    pub model: Option<String>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cached_input_tokens: i64,
    pub cost: f64,
    /// `null`: the answer was interrupted.
    pub finish_reason: Option<TurnFinish>,
    /// The reason why the request failed. A request that was refused for its length is tried once
    /// more.
    pub failure: Option<RecordedFailure>,
    /// The parts of the request. `null`: the step ended before the request was made.
    pub context: Option<ContextRecord>,
    /// The tool calls in the answer, in order.
    pub tools: Vec<ToolRecord>,
    /// The number of calls that are left out of `tools`.
    pub omitted_tools: i64,
    /// The model that answered, as the provider names it: often a dated version of `model`. Absent:
    /// the provider did not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
}

words! {
    /// The kind of a tool.
    pub enum ToolKind {
        Registered = "registered",
        /// A tool on the agent's memory.
        Memory = "memory",
        /// A tool of a server of the Model Context Protocol.
        Mcp = "mcp",
        /// A tool of the class that extends this one.
        Class = "class",
        /// A tool of the client.
        Client = "client",
    }
}

/// One call of a tool.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    pub tool_call_id: String,
    pub name: String,
    pub kind: ToolKind,
    /// `null`: the call was not made. It was refused, or left to the client or the user.
    pub started_at: Option<i64>,
    /// `null`: the call was not made, or was interrupted.
    pub duration_ms: Option<i64>,
    /// The reason why the call failed: a sentence without its output. `null`: it did not fail.
    pub error: Option<String>,
}

/// What `getTurns` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TurnList {
    pub turns: Vec<ShownTurn>,
    /// `null` at the end.
    pub cursor: Option<String>,
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
    /// The time when the day began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<i64>,
    /// The time when the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The first event of the turn's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The number of these turns that failed, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_turns: Option<i64>,
    /// Whether the turn failed, by turn. A turn that failed before any output has no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_failed: Option<bool>,
    /// The model, by turn and by model; `null`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The turn's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The number of turns that ended, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<i64>,
}

words! {
    /// The grouping of usage.
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

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WasDeleted {
    /// `false`: the session did not exist.
    pub deleted: bool,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In a receipt for several agents: the name prefix of the destroyed agents, and their
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedNames>,
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// The answer of the block's external source. Absent: the text was stored only in this
    /// agent.
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
