//! Agent.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::MemoryUse;
use super::shapes::{Erased, ErasedNames, HomeReceipt, Limits};
use crate::Object;
use crate::operation::Operation;

/// Shows how large the agent is, how much memory is used, and what runs.
///
/// The cost of the call doesn't grow with the agent: of a long table only the first 1,000 rows are
/// counted. Memory and limits are the isolate's, which agents may share.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GetStats {}

impl GetStats {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Operation for GetStats {
    type Output = Stats;
    const NAME: &'static str = "getStats";
    const READS: bool = true;
}

/// Reads the tables that the Agents SDK left in this object, a page at a time.
///
/// An object retains its storage when its class is transferred to this agent's. The rows are those
/// of conversations, their media, summaries and context memory; the client's importer converts
/// them. Only `destroy` changes these tables.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LoadForeignRows {
    /// The `cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl LoadForeignRows {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    LoadForeignRows:
    cursor: impl Into<String>;
}

impl Operation for LoadForeignRows {
    type Output = ForeignPage;
    const NAME: &'static str = "loadForeignRows";
    const READS: bool = true;
}

/// Mints a token for a browser: for this agent, valid for `expiresIn` seconds, and limited to its
/// session and its operations.
///
/// The operations of `preset` and `operations` are combined. Without either, the token runs every
/// operation except those that need the secret or must be named. In any case, the holder may write
/// only user messages, and may choose neither the model nor the system prompt, unless `allow`
/// permits it. An omitted field allows more than a present one, so no field may be `null`.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MintToken {
    /// The token's lifetime in seconds.
    /// Default: `3600`.
    pub expires_in: i64,
    /// Default: `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Allow>,
    /// Your name for the holder of the token, such as `user-42`: the tokens of one holder
    /// share the counts of `limits`. If omitted, the token is counted separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The limits for the turns of the token's holder. The agent's own `limits` apply, too, so a
    /// token's can only be tighter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Operations that the token may run in addition to its preset's; `chat` allows chat
    /// turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The only session that the token may use. Default: all sessions. `chat` needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What requests over the base URL let the model do with the agent's memory, unless their
    /// header `x-session-memory` asks for less. A request that asks for more is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_memory: Option<MemoryUse>,
}

impl MintToken {
    #[must_use]
    pub fn new(expires_in: i64) -> Self {
        Self {
            expires_in,
            allow: None,
            holder: None,
            limits: None,
            operations: None,
            preset: None,
            session_id: None,
            session_memory: None,
        }
    }
}

setters! {
    MintToken:
    allow: Allow;
    holder: impl Into<String>;
    limits: Limits;
    operations: Vec<String>;
    preset: Preset;
    session_id: impl Into<String>;
    session_memory: MemoryUse;
}

impl Operation for MintToken {
    type Output = Minted;
    const NAME: &'static str = "mintToken";
    const READS: bool = false;
}

/// Drops every table and empties the storage. The next call starts with an empty agent.
///
/// An agent in a directory is removed from it first. If the directory doesn't respond, nothing is
/// destroyed.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Destroy {
    /// The agent's name, as a confirmation.
    pub confirm: String,
    /// Also return a receipt, with counts of up to a million of each kind.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
}

impl Destroy {
    #[must_use]
    pub fn new(confirm: impl Into<String>) -> Self {
        Self {
            confirm: confirm.into(),
            purge: None,
        }
    }
}

setters! {
    Destroy:
    purge: bool;
}

impl Operation for Destroy {
    type Output = Destroyed;
    const NAME: &'static str = "destroy";
    const READS: bool = false;
}

/// The permissions of a token beyond its operations. Each permission is off unless it is granted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Allow {
    /// For a token for one session: whether the model may write the agent's own memory,
    /// which all sessions share, in the token's turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_memory: Option<bool>,
    /// Whether the holder may write messages of the agent, its tools or the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_messages: Option<bool>,
    /// Whether a turn may include tools of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<bool>,
    /// The models that a turn may name, written as in `configureAgent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Whether the holder may purge: `erase`, and deletions with `purge: true`. The token's
    /// `operations` must also include the operation. The rows that a purge writes are
    /// counted for the holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
    /// Whether a turn may add system instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instructions: Option<bool>,
    /// The registered tools that the holder may call by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl Allow {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Allow:
    agent_memory: bool;
    agent_messages: bool;
    client_tools: bool;
    models: Vec<String>;
    purge: bool;
    system_instructions: bool;
    tools: Vec<String>;
}

/// A part of `Stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CallbackStats {
    /// Calls in progress or waiting for a retry.
    pub waiting: i64,
    /// Calls that failed permanently, newest first. An agent stores 64 of them.
    pub failed: Vec<FailedCallback>,
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Destroyed {
    pub destroyed: bool,
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
    /// With `purge`: the other agents that store blocks of this one. They still exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homes: Option<Vec<String>>,
    /// The operation that erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A call that failed permanently, as `getStats` shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FailedCallback {
    /// The delivery's id, the same for every attempt. A caller without the secret is shown only its
    /// beginning, which no request can use.
    pub id: String,
    pub attempts: i64,
    pub failed_at: i64,
    /// The reason why the last try failed.
    pub reason: String,
    /// The session of the turn or the block. Absent: a block of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// A failed learning pass.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FailedLook {
    pub session_id: String,
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: i64,
}

/// What `loadForeignRows` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ForeignPage {
    pub rows: Vec<ForeignRow>,
    /// Where the next page starts. `null`: this is the last page.
    pub cursor: Option<String>,
}

/// A part of `ForeignPage`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ForeignRow {
    pub table: String,
    /// The row's columns by their names. Bytes are base64.
    pub row: Object,
}

words! {
    /// The completeness of the search index.
    pub enum IndexState {
        /// There was no search yet, so there is no index.
        None = "none",
        /// Some events are not in the index yet.
        Building = "building",
        /// The index contains every event.
        Complete = "complete",
    }
}

/// The reason why learning failed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnError {
    pub code: String,
    pub message: String,
    pub at: i64,
    /// The number of attempts that have failed in a row.
    pub attempts: i64,
}

/// A part of `Stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearningStats {
    /// The number of sessions waiting for a learning pass, counted up to 1,000.
    pub waiting: i64,
    /// The failed learning passes that will be retried, newest first, at most 20.
    pub failures: Vec<FailedLook>,
    /// The time of the next automatic step of consolidation. `null`: no step is due.
    pub consolidation_due_at: Option<i64>,
    /// The reason why the last automatic step of consolidation failed. `null`: it did not
    /// fail.
    pub consolidation_error: Option<LearnError>,
}

/// The limits in force, in bytes unless stated otherwise.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LimitStats {
    pub event_bytes: i64,
    pub answer_bytes: i64,
    /// The longest body of most operations; openapi.json gives each operation's limit.
    pub body_bytes: i64,
    /// The longest body of chats and of operations that write events.
    pub events_body_bytes: i64,
    /// The maximum number of concurrent turns of one agent.
    pub running_turns: i64,
}

/// The memory of wasm. JavaScript's strings and the engine's memory are not included.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// The size of the wasm memory, which never shrinks.
    pub wasm_bytes: i64,
    pub in_use_bytes: i64,
    pub in_use_peak_bytes: i64,
}

/// What `mintToken` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Minted {
    pub token: String,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

words! {
    /// A set of operations under a name.
    pub enum Preset {
        /// The operations that a page for one conversation needs.
        Chat = "chat",
        /// All operations that only read and don't require the secret.
        Read = "read",
        /// Only chat turns: for a client of a provider's API that uses the base URL.
        Model = "model",
    }
}

/// A part of `Stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReservedBytes {
    pub held_bytes: i64,
    pub max_bytes: i64,
}

/// What `getStats` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The size of the agent's database, free pages included.
    pub database_bytes: i64,
    pub tables: Vec<Table>,
    /// An upper bound for the number of events, deleted events included: the sum of the
    /// newest `seq` of each session, of up to 1,000 sessions.
    pub events_at_most: i64,
    pub memory: MemoryStats,
    /// Memory used by running turns.
    pub turns: Turns,
    /// Memory of large request bodies and answers.
    pub requests: ReservedBytes,
    pub search_index: IndexState,
    /// Calls after turns and memory changes (`onTurnEnd`, `onMemoryChange`).
    pub callbacks: CallbackStats,
    /// The pending learning, and its failures. `getProposals` shows what was learned.
    pub learning: LearningStats,
    pub limits: LimitStats,
}

/// A part of `Stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Table {
    pub name: String,
    pub rows: i64,
    /// The table has more than `rows` rows; counting stopped there.
    pub is_at_least: bool,
}

/// A part of `Stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Turns {
    /// Running turns of this agent.
    pub running: i64,
    pub held_bytes: i64,
    pub max_bytes: i64,
}
