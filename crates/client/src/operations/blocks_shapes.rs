//! Blocks of memory: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Origin;
use super::shapes::{Erased, ErasedNames, HomeReceipt};
use crate::Object;

/// What `appendToBlock`, `defineBlock`, `getBlock`, `getBlocks`, `revertBlock`, `setBlock` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Block {
    pub label: String,
    pub kind: BlockKind,
    pub description: Option<String>,
    pub max_tokens: Option<i64>,
    /// The block's text in the prompt. A searchable block shows its number of
    /// entries, a loadable block the list of its documents.
    pub content: String,
    /// Estimated tokens of the content.
    pub tokens: i64,
    /// Counts the writes of the block's text. 0: the text was never written.
    pub version: i64,
    pub scope: BlockScope,
    /// The home of the content. `null`: this agent.
    pub source: Option<BlockSource>,
    pub when_changed: WhenChanged,
    /// Whether the model may write the block with its tools.
    /// Default: `false`.
    pub model_writes: bool,
    /// `null`: the block is deployed with the Worker and was never written.
    pub updated_at: Option<i64>,
    /// Whether a file that its sender did not trust brought the definition. It then hides no block
    /// of the agent, and prompts show no description of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// The data that callers wrote on the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The block's own rules for how long its texts are kept, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<BlockRetention>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The source of a readonly or writable block's text, if it is not the operator who wrote it by
    /// an operation, or the model by its tool. Prompts quote what comes from a tool or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_source: Option<Origin>,
    /// The reason why the content is missing: the block's home did not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

words! {
    /// The words of this field.
    pub enum BlockScope {
        Agent = "agent",
        Session = "session",
    }
}

words! {
    /// A part of `Block`.
    pub enum BlockKind {
        /// A text that the model reads and can't change.
        Readonly = "readonly",
        /// A scratchpad that the model keeps, always in the prompt.
        Writable = "writable",
        /// Entries that the model finds by searching.
        Searchable = "searchable",
        /// Documents that the model loads whole, by their keys.
        Loadable = "loadable",
    }
}

/// The rules for how long a block's texts are kept.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BlockRetention {
    /// The remains of a deleted entry or document go so many days after its deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_days: Option<i64>,
    /// An entry is deleted, with its versions, so many days after it was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_days: Option<i64>,
    /// An earlier version of the block, or of its entries and documents, is deleted so many
    /// days after another one took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_days: Option<i64>,
}

impl BlockRetention {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    BlockRetention:
    deleted_days: i64;
    entries_days: i64;
    versions_days: i64;
}

/// The home of a block's content outside this agent: exactly one of `r2`, `r2Prefix`, `agent` and
/// `service`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BlockSource {
    /// The name of another agent, such as `user:42` or `user:{2}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// With `agent`: the label of the block there. Default: this block's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The key of an object in the bucket. `{name}` stands for this agent's name, `{1}`,
    /// `{2}` … for the name's parts between colons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2: Option<String>,
    /// The prefix of documents in the bucket. The rest of a key names the document. With
    /// `{name}`, `{1}` … it ends with `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2_prefix: Option<String>,
    /// The name of a service binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl BlockSource {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    BlockSource:
    agent: impl Into<String>;
    label: impl Into<String>;
    r2: impl Into<String>;
    r2_prefix: impl Into<String>;
    service: impl Into<String>;
}

/// What `clearBlocks` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Cleared {
    /// The number of blocks that held another text.
    pub cleared: i64,
}

/// One version of a block's text, or of an entry's or a document's.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub version: i64,
    pub content: String,
    pub tokens: i64,
    /// `tool`: a model wrote the text. `operation`: a caller of the API did.
    pub written_by: VersionWrittenBy,
    /// The session in which the text was written.
    pub session_id: Option<String>,
    pub turn_id: Option<String>,
    pub reason: Option<String>,
    pub written_at: i64,
    /// Whether the entry or the document was deleted with this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<bool>,
    /// The answer in which a model wrote the text: the id of the answer's first event. The
    /// log has no such event if the turn ended without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The events that the text of an entry or a document comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// The data that callers wrote on the entry or the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The source of the text. Absent for a block's text: a model wrote it if a tool did, and
    /// else the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// An entry's title, or a document's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Since when the fact holds, as the writer said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

words! {
    /// The words of this field.
    pub enum VersionWrittenBy {
        Tool = "tool",
        Operation = "operation",
    }
}

/// Versions of a block's text.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Newest first.
    pub versions: Vec<Version>,
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WasRemoved {
    /// `false`: there was nothing to remove.
    pub removed: bool,
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
    /// The answer of the home that holds the block. Absent: the text lived in this agent alone.
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

words! {
    /// The reaction of a conversation to a block that changes after the prompt was frozen.
    pub enum WhenChanged {
        /// The prompt keeps the old content until it is refreshed.
        Wait = "wait",
        /// `getReminder` returns the new content.
        Remind = "remind",
    }
}
