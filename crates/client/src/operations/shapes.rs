//! Shapes that several operations use.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// What `appendEvents`, `persistWorkingContext` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendOutcome {
    pub events: Vec<AppendedEvent>,
    pub leaf_id: Option<String>,
}

/// The result of appending one event.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendedEvent {
    pub id: String,
    pub seq: i64,
    /// `false`: the session already had an event with this id, and it is unchanged.
    pub inserted: bool,
}

/// The outcome of an import.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    pub session_id: String,
    /// The number of the session's events.
    pub events: i64,
    /// How many events this import wrote.
    pub imported: i64,
    /// How many events existed already.
    pub skipped: i64,
    /// What the file contains and this import left out. A frozen prompt is imported only
    /// with the secret and `?allowSources=true`. Otherwise the session's next turn
    /// freezes a new prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
}

/// What became of an entry or a document that was to be deleted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ItemDeleted {
    /// `false`: there was none.
    pub deleted: bool,
    /// How many of its earlier texts `getBlockVersions` still shows, so that it can be
    /// brought back. `removeBlock` with `purge` erases them, with the block. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_kept: Option<i64>,
}

words! {
    /// A part of `Imported`.
    pub enum LeftOut {
        Prompt = "prompt",
        /// The servers of tools, in the file of a whole agent.
        Servers = "servers",
    }
}

/// A tool that a model may call. The shape of `getTools`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    pub name: String,
    pub description: String,
    /// JSON Schema.
    pub parameters: Object,
}

/// A part of `VectorReport`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReportedError {
    pub code: String,
    pub message: String,
}

words! {
    /// A part of `ContextMessage`.
    pub enum Role {
        User = "user",
        Assistant = "assistant",
        Tool = "tool",
        System = "system",
    }
}

/// One call of a tool, as a model asked for it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as a JSON object, not as text.
    pub arguments: Object,
}

impl ToolCall {
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Object) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
        }
    }
}

/// A message of the AI SDK as it was appended, and its `createdAt`. The application's
/// own fields are kept.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UiMessage {
    pub id: String,
    pub role: UiMessageRole,
    pub parts: Vec<Object>,
    /// Milliseconds since the epoch. A `createdAt` of another type, such as a text, is
    /// shown as it was appended.
    pub created_at: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The fields that have no name here.
    #[serde(flatten)]
    pub more: Object,
}

words! {
    /// The words of this field.
    pub enum UiMessageRole {
        User = "user",
        Assistant = "assistant",
        System = "system",
    }
}

/// How vectors took part in a search.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct VectorReport {
    /// Some texts have no vector yet. The next searches make the missing vectors.
    pub pending: bool,
    /// Why vectors took no part in the search, or only some of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
}

words! {
    /// A part of `ShownConfig`.
    pub enum WhenBusy {
        /// The message is refused with `turn_in_progress`.
        Reject = "reject",
        /// The message waits until the turn is over. At most 16 messages wait.
        Queue = "queue",
        /// The message stops the turn, which keeps what it said, and is answered next.
        Replace = "replace",
    }
}
