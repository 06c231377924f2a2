//! Shapes that several operations use.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::TagTests;
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

/// The number of erased items of each kind. Counts, never content.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// Events of logs.
    pub events: i64,
    /// Summaries that covered erased events, or that the request listed.
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
    /// Copies of documents in sessions' contexts and logs.
    pub loaded_documents: i64,
    /// Frozen prompts. The next use renders them again.
    pub prompts: i64,
    pub vectors: i64,
    /// The records of turns outside their events.
    pub turns: i64,
    /// Queued messages and answers.
    pub waiting_messages: i64,
    /// Reports to `onTurnEnd` and `onMemoryChange` that were not delivered.
    pub callbacks: i64,
    /// Sessions whose name, metadata and tags were emptied, and blocks whose description and
    /// default text were. They stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptions: Option<i64>,
    /// Proposals that were erased, in whole or in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposals: Option<i64>,
}

setters! {
    Erased:
    descriptions: i64;
    proposals: i64;
}

/// The agents that a receipt is for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ErasedNames {
    pub prefix: String,
    pub count: i64,
    /// The agents among them that stored the others' shared memory, by name.
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

/// The data that an item must have to pass the filter.
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

/// The answer of a block's external source to a deletion.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HomeReceipt {
    pub kind: HomeKind,
    /// The agent's name, the service's binding, or the object's key in the bucket.
    pub name: String,
    /// `false`: the source had no such text, or is a service without deletion.
    pub deleted: bool,
    /// The digest of the other agent's receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The counts of what the other agent erased.
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
    /// The number of events that this import wrote.
    pub imported: i64,
    /// The number of events that existed already.
    pub skipped: i64,
    /// The parts of the file that this import left out. A frozen prompt is imported only with the
    /// secret and `?allowSources=true`. Otherwise the session's next turn freezes a new prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
}

/// The result of deleting an entry or a document.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ItemGone {
    /// `false`: there was none.
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
    /// The number of its earlier texts that `getBlockVersions` still shows, so that it can be
    /// brought back. The same deletion with `purge` erases them. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_kept: Option<i64>,
    /// The time when `retention` deletes them, in milliseconds since the epoch. Absent: no
    /// rule applies, and they stay until a purge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_until: Option<i64>,
}

words! {
    /// A part of `Imported`.
    pub enum LeftOut {
        Prompt = "prompt",
        /// The servers of tools, in the file of a whole agent.
        Servers = "servers",
        /// The changes of memory that models proposed, in the file of a whole agent.
        Proposals = "proposals",
    }
}

/// The spending limits of turns. Omitted fields set no limit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The cost limit per day, by the agent's `prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<f64>,
    /// The token limit per day, which ends at midnight UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<i64>,
    /// The maximum number of turns that may start per minute.
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
