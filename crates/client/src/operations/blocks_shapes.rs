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
    /// Where the content is stored. `null`: in this agent.
    pub source: Option<BlockSource>,
    pub when_changed: WhenChanged,
    /// Whether the model may write the block with its tools.
    /// Default: `false`.
    pub model_writes: bool,
    /// `null`: the block is deployed with the Worker and was never written.
    pub updated_at: Option<i64>,
    /// Whether the definition comes from an untrusted file. It then hides no block of the
    /// agent, and prompts don't show its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// The custom data of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The block's own retention rules, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<BlockRetention>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The source of a readonly or writable block's text. Absent if the operator wrote the text
    /// through an operation, or the model with its tool. Prompts quote text that comes from a tool
    /// or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_source: Option<Origin>,
    /// The reason why the content is missing: the block's source did not provide it.
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
        /// A text that the model maintains, always in the prompt.
        Writable = "writable",
        /// Entries that the model finds by searching.
        Searchable = "searchable",
        /// Documents that the model loads by their keys.
        Loadable = "loadable",
    }
}

/// A block's retention rules.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BlockRetention {
    /// The remaining versions of a deleted entry or document are deleted this many days
    /// after its deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_days: Option<i64>,
    /// Entries are deleted, with their versions, this many days after they were last
    /// written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_days: Option<i64>,
    /// Earlier versions of the block, its entries and its documents are deleted this many
    /// days after they were replaced.
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

/// Where a block's content is stored outside this agent: exactly one of `r2`, `r2Prefix`,
/// `agent` and `service`.
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
    /// The key of an object in the bucket. `{name}` is replaced with this agent's name, and
    /// `{1}`, `{2}` … with the name's parts between colons.
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
    /// The number of blocks that had a different text.
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
    /// The custom data of the entry or the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The source of the text. For a block's text, it can be absent: then a model wrote it if
    /// `writtenBy` is `tool`, and otherwise the operator did.
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
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
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

words! {
    /// How a conversation handles a block that changes after the prompt was frozen.
    pub enum WhenChanged {
        /// The prompt keeps the old content until it is refreshed.
        Wait = "wait",
        /// `getReminder` returns the new content.
        Remind = "remind",
    }
}
