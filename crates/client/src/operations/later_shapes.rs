//! Shapes that several operations use: the second half.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shapes::{Erased, ErasedNames, HomeReceipt};
use crate::Object;

words! {
    /// From the least to the most.
    pub enum MemoryUse {
        /// Neither the prompt nor a tool.
        Off = "off",
        /// The prompt, and the tools that change nothing.
        Read = "read",
        /// The prompt and all tools.
        On = "on",
    }
}

words! {
    /// The source of a text.
    pub enum Origin {
        /// A user, or a caller with a minted token.
        User = "user",
        /// A model, by its tools.
        Agent = "agent",
        /// The result of a tool.
        Tool = "tool",
        /// A file, or another system.
        Import = "import",
        /// The holder of the secret.
        Operator = "operator",
    }
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub erased: Erased,
    /// The agent's name.
    pub agent: String,
    /// The operation that erased.
    pub operation: String,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    pub digest: String,
    /// In a receipt for several agents: the name prefix of the destroyed agents, and their
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedNames>,
    /// The answer of the block's external source. Absent: the text was stored only in this
    /// agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeReceipt>,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Receipt {
    #[must_use]
    pub fn new(
        erased: Erased,
        agent: impl Into<String>,
        operation: impl Into<String>,
        at: i64,
        digest: impl Into<String>,
    ) -> Self {
        Self {
            erased,
            agent: agent.into(),
            operation: operation.into(),
            at,
            digest: digest.into(),
            agents: None,
            home: None,
            signature: None,
        }
    }
}

setters! {
    Receipt:
    agents: ErasedNames;
    home: HomeReceipt;
    signature: impl Into<String>;
}

/// A part of `VectorReport`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReportedError {
    pub code: String,
    pub message: String,
}

/// The retention rules. Omitted fields delete nothing.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// The remaining versions of a deleted entry or document are deleted this many days
    /// after its deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_days: Option<i64>,
    /// Entries are deleted, with their versions, this many days after they were last
    /// written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_days: Option<i64>,
    /// Events are deleted this many days after they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_days: Option<i64>,
    /// The number of newest checkpoints to retain in each namespace of a LangGraph thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_kept: Option<i64>,
    /// Sessions are deleted this many days after the last write to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_idle_days: Option<i64>,
    /// Earlier versions of blocks, entries and documents are deleted this many days after
    /// they were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_days: Option<i64>,
}

impl Retention {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Retention:
    deleted_days: i64;
    entries_days: i64;
    events_days: i64;
    runs_kept: i64;
    sessions_idle_days: i64;
    versions_days: i64;
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

/// Tests of tags. All must pass.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TagTests {
    /// All of these must be present. An empty list matches everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<String>>,
    /// At least one of these must be present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<String>>,
    /// None of these may be present. An empty list matches everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<Vec<String>>,
}

impl TagTests {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    TagTests:
    all: Vec<String>;
    any: Vec<String>;
    none: Vec<String>;
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

words! {
    /// The reason why a turn ended.
    pub enum TurnFinish {
        ContentFilter = "content-filter",
        Other = "other",
        /// The model finished its answer.
        Stop = "stop",
        /// The model reached its output limit.
        Length = "length",
        /// A call waits for the client's output or the user's approval: the message's parts
        /// say which.
        ToolCalls = "tool-calls",
        /// The turn was stopped by `cancelTurn`, by its page or by a later message.
        Cancelled = "cancelled",
        /// The turn failed.
        Error = "error",
    }
}

/// The spending of a turn, as callers see it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// All tokens that models read, from a cache or not.
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `inputTokens` that the provider read from its cache.
    pub cached_input_tokens: i64,
    /// By the agent's `prices`; 0 without prices.
    pub cost: f64,
}

/// A message of the AI SDK as it was appended, with its `createdAt`. The application's own
/// fields are preserved.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UiMessage {
    pub id: String,
    pub role: UiMessageRole,
    pub parts: Vec<Object>,
    /// Milliseconds since the epoch. A `createdAt` that is not a number, such as a text, is
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

/// The contribution of vectors to a search.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct VectorReport {
    /// Some texts have no vector yet. The next searches make the missing vectors.
    pub pending: bool,
    /// The reason why vectors took no part in the search, or only some of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
}

words! {
    /// A part of `ShownConfig`.
    pub enum WhenBusy {
        /// The message is refused with `turn_in_progress`.
        Reject = "reject",
        /// The message is queued until the turn ends. At most 16 messages are queued.
        Queue = "queue",
        /// The message stops the turn, whose output so far is stored, and is answered next.
        Replace = "replace",
    }
}
