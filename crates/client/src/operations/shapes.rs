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

/// How many of each kind were erased. Counts, never content.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// Events of logs.
    pub events: i64,
    /// Summaries that covered erased events, or that were named themselves.
    pub summaries: i64,
    /// Media that no other event of its session used.
    pub media: i64,
    pub sessions: i64,
    /// Definitions of blocks.
    pub blocks: i64,
    pub entries: i64,
    /// Documents of loadable blocks.
    pub documents: i64,
    /// Versions of blocks, entries and documents.
    pub versions: i64,
    /// Copies of documents in sessions' contexts and in their logs.
    pub loaded_documents: i64,
    /// Frozen prompts. The next use renders them anew.
    pub prompts: i64,
    pub vectors: i64,
    /// What was kept of turns beside their events.
    pub turns: i64,
    /// Messages and answers that waited for a turn.
    pub waiting_messages: i64,
    /// Reports to `onTurnEnd` and `onMemoryChange` that were not delivered.
    pub callbacks: i64,
    /// Proposals, or what of them was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposals: Option<i64>,
}

setters! {
    Erased:
    proposals: i64;
}

/// The agents that a receipt is for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ErasedNames {
    pub prefix: String,
    pub count: i64,
    /// The agents among them that kept what the others share, by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homes: Option<Vec<String>>,
}

impl ErasedNames {
    #[must_use]
    pub fn new(prefix: impl Into<String>, count: i64) -> Self {
        Self {
            prefix: prefix.into(),
            count,
            homes: None,
        }
    }
}

setters! {
    ErasedNames:
    homes: Vec<String>;
}

/// What a filtered thing must have.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// A test for each key: the value that it has, or `{in: [values]}`, `{gt: value}`,
    /// `{lt: value}`. All must pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<TagTests>,
}

impl Filter {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Filter:
    metadata: Object;
    tags: TagTests;
}

words! {
    /// A part of `HomeReceipt`.
    pub enum HomeKind {
        Agent = "agent",
        Bucket = "bucket",
        Service = "service",
    }
}

/// The answer of the home that holds a block, when it was asked to delete a text.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HomeReceipt {
    pub kind: HomeKind,
    /// The agent's name, the service's binding, or the object's key in the bucket.
    pub name: String,
    /// `false`: the home had no such text, or it is a service that deletes nothing.
    pub deleted: bool,
    /// The digest of the other agent's receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the other agent erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
}

impl HomeReceipt {
    #[must_use]
    pub fn new(kind: HomeKind, name: impl Into<String>, deleted: bool) -> Self {
        Self {
            kind,
            name: name.into(),
            deleted,
            digest: None,
            erased: None,
        }
    }
}

setters! {
    HomeReceipt:
    digest: impl Into<String>;
    erased: Erased;
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

/// What became of an entry or a document.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ItemGone {
    /// `false`: there was none.
    pub deleted: bool,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of a receipt for several agents: how the destroyed ones are named, and how many there
    /// were.
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
    /// How many of its earlier texts `getBlockVersions` still shows, so that it can be
    /// brought back. The same deletion with `purge` erases them. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_kept: Option<i64>,
    /// When `retention` takes them, in milliseconds since the epoch. Absent: no rule does, and
    /// they stay until a purge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_until: Option<i64>,
}

words! {
    /// A part of `Imported`.
    pub enum LeftOut {
        Prompt = "prompt",
        /// The servers of tools, in the file of a whole agent.
        Servers = "servers",
        /// What models proposed to change in memory, in the file of a whole agent.
        Proposals = "proposals",
    }
}

/// How much turns may spend. A field that is left out sets no limit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// What a day may cost, by the agent's `prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<f64>,
    /// How many tokens models may read and write in a day, which ends at midnight UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<i64>,
    /// How many turns may begin within a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_per_minute: Option<i64>,
}

impl Limits {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Limits:
    cost_per_day: f64;
    tokens_per_day: i64;
    turns_per_minute: i64;
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

words! {
    /// Who a text comes from.
    pub enum Origin {
        /// A user, or a caller with a minted token.
        User = "user",
        /// A model, by its tools.
        Agent = "agent",
        /// The result of a tool.
        Tool = "tool",
        /// A file, or another system.
        Import = "import",
        /// Who holds the secret.
        Operator = "operator",
    }
}

/// What a deletion with `purge` adds to its answer.
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
    /// Of a receipt for several agents: how the destroyed ones are named, and how many there
    /// were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedNames>,
    /// What the home that holds the block answered. Absent: the text lived in this agent
    /// alone.
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

/// How long texts are kept. A field that is left out deletes nothing by itself.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// What is left of a deleted entry or document goes so many days after its deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_days: Option<i64>,
    /// An entry is deleted, with its versions, so many days after it was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_days: Option<i64>,
    /// An event is deleted so many days after it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_days: Option<i64>,
    /// Of a LangGraph thread, so many of the newest checkpoints of each namespace stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_kept: Option<i64>,
    /// A session is deleted so many days after the last write to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_idle_days: Option<i64>,
    /// An earlier version of a block, an entry or a document is deleted so many days after
    /// another one took its place.
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
    /// Each of these is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<String>>,
    /// One of these is there, or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<String>>,
    /// None of these is there.
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
    /// Why a turn ended.
    pub enum TurnFinish {
        ContentFilter = "content-filter",
        Other = "other",
        /// The model was done.
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

/// What a turn spent, as callers see it.
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
