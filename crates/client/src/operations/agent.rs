//! Agent.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::shapes::{Erased, ErasedNames, HomeReceipt, Limits};
use crate::Object;
use crate::operation::Operation;

/// Shows how large the agent is, how much memory is used, and what runs.
///
/// The cost of the call doesn't grow with the agent: of a long table only the first 1,000 rows are
/// counted. Memory and limits are the isolate's, which agents may share.
///
/// Not for a token that is narrowed to a session.
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
/// An object keeps its storage when its class becomes this agent's. The rows are those of
/// conversations, their media, summaries and context memory; the client's importer writes what they
/// say. Nothing changes these tables but `destroy`.
///
/// Not for a token that is narrowed to a session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LoadForeignRows {
    /// The `cursor` of the page before.
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

/// Mints a token that a browser can hold: for this agent, for the time that `expiresIn` sets, and
/// limited to its session and its operations.
///
/// `preset` and `operations` add up. With neither, the token runs every operation except those that
/// need the secret or must be named. In any case, the holder may write only user messages, and may
/// choose neither the model nor the system prompt, unless `allow` permits it. A field that is left
/// out gives more than one that is there, so no field may be `null`.
///
/// Needs the secret.
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
    /// The holder of the token, in your own words, such as `user-42`: the tokens of one holder
    /// share what `limits` count. Left out: the token counts by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The limits for the turns of the token's holder. The agent's own `limits` hold as well, so a
    /// token's can only be tighter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Operations that the token may run besides its preset's; `chat` allows chat turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The only session that the token may use. Left out: all sessions. `chat` needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
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
}

impl Operation for MintToken {
    type Output = Minted;
    const NAME: &'static str = "mintToken";
    const READS: bool = false;
}

/// Drops every table and empties the storage. The next call starts with an empty agent.
///
/// An agent that stands in a directory is written out of it first. If the directory gives no
/// answer, nothing is destroyed.
///
/// Needs the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Destroy {
    /// The agent's name, which guards against mistakes.
    pub confirm: String,
    /// Answers with a receipt, too: what there was, counted up to a million of each kind.
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

/// The permissions of a token beyond its operations. Each permission is off unless it is given.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Allow {
    /// For a token of one session: whether the model may write the agent's own memory,
    /// which all sessions share, in the token's turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_memory: Option<bool>,
    /// Whether the holder may write messages of the agent, its tools or the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_messages: Option<bool>,
    /// Whether a turn may bring tools of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<bool>,
    /// The models that a turn may name, written as in `configureAgent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Whether the holder may purge: `erase`, and deletions with `purge: true`. The token's
    /// `operations` must name the operation, too. What a purge writes counts as the holder's.
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
    /// Calls that are under way or wait for another try.
    pub waiting: i64,
    /// Calls that were given up, newest first. An agent keeps 64 of them.
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
    /// With `purge`: the other agents that keep blocks of this one. They are still there.
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

/// A call that was given up, as `getStats` shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FailedCallback {
    /// The delivery's id, which every try had. A caller without the secret is shown only its
    /// beginning, which no request can use.
    pub id: String,
    pub attempts: i64,
    pub failed_at: i64,
    /// The reason why the last try failed.
    pub reason: String,
    /// Of a turn, or of a block of this session. Absent: a block of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// A look at a session that failed.
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
    /// The place where the next page begins. `null`: this page is the last.
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
        /// Nobody has searched yet, so there is no index.
        None = "none",
        /// Some events are not in the index yet.
        Building = "building",
        /// The index holds every event.
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
    /// The sessions that wait for a look, of which 1,000 are counted at most.
    pub waiting: i64,
    /// The looks that failed last and are tried again, newest first: 20 at most.
    pub failures: Vec<FailedLook>,
    /// The time when the next step of consolidation is due by itself. `null`: no step is due.
    pub consolidation_due_at: Option<i64>,
    /// The reason why the last step of consolidation that was due by itself failed. `null`: it did
    /// not fail.
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
    /// The most turns of one agent that may run at once.
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
        /// All operations that change nothing and don't need the secret.
        Read = "read",
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
    /// Memory that running turns hold.
    pub turns: Turns,
    /// Memory of request bodies and answers that are large enough to be counted.
    pub requests: ReservedBytes,
    pub search_index: IndexState,
    /// Calls that tell of turns' ends and of changes of memory (`onTurnEnd`,
    /// `onMemoryChange`).
    pub callbacks: CallbackStats,
    /// The learning that is due, and its failures. `getProposals` shows what was learnt.
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
