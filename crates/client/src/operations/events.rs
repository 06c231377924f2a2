//! Events.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::ToolCall;
use super::shapes::{AppendOutcome, Erased, ErasedNames, HomeReceipt};
use crate::Object;
use crate::operation::Operation;

/// Appends events to a session's log, all of them or none, in the order given.
///
/// An event whose id is already in the session is not written again. The answer contains the stored
/// event with `inserted: false`, so a retry is safe.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendEvents {
    pub session_id: String,
    pub events: Vec<NewEvent>,
    /// The leaf that the caller expects; at another leaf the call fails with `leaf_moved`.
    /// `null`: an empty session.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_leaf_id: Option<Option<String>>,
    /// The event that the first new event follows. Default: the leaf. `null`: the first new
    /// event is a root.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_id: Option<Option<String>>,
}

impl AppendEvents {
    #[must_use]
    pub fn new(session_id: impl Into<String>, events: Vec<NewEvent>) -> Self {
        Self {
            session_id: session_id.into(),
            events,
            expected_leaf_id: None,
            parent_id: None,
        }
    }
}

setters! {
    AppendEvents:
    or null expected_leaf_id: impl Into<String>;
    or null parent_id: impl Into<String>;
}

impl Operation for AppendEvents {
    type Output = AppendOutcome;
    const NAME: &'static str = "appendEvents";
    const READS: bool = false;

    fn is_repeatable(&self) -> bool {
        self.events.iter().all(|event| event.id.is_some())
    }
}

/// Reads a session's events in the order in which they were written.
///
/// Without filters: the oldest `limit`; with `tail`, the newest. Use `afterSeq` and `beforeSeq` to
/// page through the rest. A page of more than 4 MiB is refused, and the error contains a `limit`
/// that fits.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LoadEvents {
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_seq: Option<i64>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only events created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<bool>,
}

impl LoadEvents {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            actions: None,
            after_seq: None,
            before_seq: None,
            limit: None,
            since: None,
            tail: None,
        }
    }
}

setters! {
    LoadEvents:
    actions: Vec<Action>;
    after_seq: i64;
    before_seq: i64;
    limit: i64;
    since: i64;
    tail: bool;
}

impl Operation for LoadEvents {
    type Output = Vec<Event>;
    const NAME: &'static str = "loadEvents";
    const READS: bool = true;
}

/// Deletes events. Their children are attached to the nearest remaining ancestor. Unknown ids are
/// ignored.
///
/// With `purge`, their text is in no table after the call: summaries that covered the events are
/// removed, and the answer is a receipt. Forks of the session keep their copies.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteEvents {
    pub session_id: String,
    pub event_ids: Vec<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
}

impl DeleteEvents {
    #[must_use]
    pub fn new(session_id: impl Into<String>, event_ids: Vec<String>) -> Self {
        Self {
            session_id: session_id.into(),
            event_ids,
            purge: None,
        }
    }
}

setters! {
    DeleteEvents:
    purge: bool;
}

impl Operation for DeleteEvents {
    type Output = Deleted;
    const NAME: &'static str = "deleteEvents";
    const READS: bool = false;
}

words! {
    /// The kind of an event.
    pub enum Action {
        UserMessage = "user_message",
        AgentMessage = "agent_message",
        ToolCallRequest = "tool_call_request",
        ToolResult = "tool_result",
        SystemInstruction = "system_instruction",
        Compaction = "compaction",
    }
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    pub deleted: i64,
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

/// An event as it is read.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub id: String,
    pub session_id: String,
    /// The event's number: starts at 1, grows within the session, is never reused.
    pub seq: i64,
    /// The event that this event follows; `null` for a root.
    pub parent_id: Option<String>,
    pub action: Action,
    pub content: String,
    pub created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

/// An event to append. The caller may set `id`, `metadata` and `createdAt`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct NewEvent {
    pub action: Action,
    /// Required, except with `tool_call_request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Milliseconds since the epoch. Default: the current time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Only with `tool_result`: whether the tool failed; `content` is then the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The event to follow. Default: the event before this one in the call. `null`: a root.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_id: Option<Option<String>>,
    /// Ignored: the log numbers its events. Accepted so that a loaded event can be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// Ignored: the call's `sessionId` applies. Accepted so that a loaded event can be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only with `tool_result`: the id of the call that this result answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Only with `tool_call_request`, which needs at least one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Only with `tool_result`: the name of the tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

impl NewEvent {
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self {
            action,
            content: None,
            created_at: None,
            id: None,
            is_error: None,
            metadata: None,
            parent_id: None,
            seq: None,
            session_id: None,
            tool_call_id: None,
            tool_calls: None,
            tool_name: None,
        }
    }
}

setters! {
    NewEvent:
    content: impl Into<String>;
    created_at: i64;
    id: impl Into<String>;
    is_error: bool;
    metadata: Object;
    or null parent_id: impl Into<String>;
    seq: i64;
    session_id: impl Into<String>;
    tool_call_id: impl Into<String>;
    tool_calls: Vec<ToolCall>;
    tool_name: impl Into<String>;
}
