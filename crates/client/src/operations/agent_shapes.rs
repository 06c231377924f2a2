//! Agent: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shapes::{Erased, ErasedNames, HomeReceipt, Retention, WhenBusy};
use crate::Object;

/// What a token allows beyond its operations. Each permission is off unless it is
/// given.
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
    system_instructions: bool;
    tools: Vec<String>;
}

/// When the agent is backed up by itself, and how many of its backups stay.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupPlan {
    /// How many of this agent's backups stay in the bucket, the newest.
    /// Default: `7`.
    pub keep: i64,
    /// The hours from the beginning of a backup to that of the next. Left out: no schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_hours: Option<i64>,
}

/// When the agent is backed up by itself, and how many of its backups stay.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupPlanInput {
    /// The hours from the beginning of a backup to that of the next. Left out: no schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_hours: Option<i64>,
    /// How many of this agent's backups stay in the bucket, the newest.
    /// Default: `7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<i64>,
}

impl BackupPlanInput {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    BackupPlanInput:
    every_hours: i64;
    keep: i64;
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

/// Who is called: a service binding, or an address whose origin is in `TOOL_ORIGINS`. One of
/// the two.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CallbackTarget {
    /// The service binding's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl CallbackTarget {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    CallbackTarget:
    service: impl Into<String>;
    url: impl Into<String>;
}

words! {
    /// The layer that a setting's value comes from.
    pub enum ConfigOrigin {
        /// What `configureAgent` told this agent.
        Agent = "agent",
        /// What was deployed for every agent.
        Defaults = "defaults",
        /// What holds where nobody said anything.
        BuiltIn = "built-in",
    }
}

/// Where each setting's value comes from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfigOrigins {
    pub model: ConfigOrigin,
    pub summary_model: ConfigOrigin,
    pub max_output_tokens: ConfigOrigin,
    pub temperature: ConfigOrigin,
    pub reasoning_effort: ConfigOrigin,
    pub refresh_prompt: ConfigOrigin,
    pub prices: ConfigOrigin,
    pub system_instructions: ConfigOrigin,
    pub max_steps: ConfigOrigin,
    pub session_search: ConfigOrigin,
    pub vectors: ConfigOrigin,
    pub max_context_tokens: ConfigOrigin,
    pub keep_media: ConfigOrigin,
    pub reserved_metadata_keys: ConfigOrigin,
    pub when_busy: ConfigOrigin,
    pub on_turn_end: ConfigOrigin,
    pub on_memory_change: ConfigOrigin,
    pub limits: ConfigOrigin,
    pub retention: ConfigOrigin,
    pub backups: ConfigOrigin,
    pub learn: ConfigOrigin,
}

/// Something in the deployed defaults that the Worker leaves out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeployedProblem {
    /// The variable or the file that holds it.
    pub source: String,
    /// Where it stands there, such as `maxSteps` or `blocks[1].kind`. Empty: the whole.
    pub field: String,
    pub message: String,
}

/// What a deletion with `purge` adds to its answer.
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
    /// What the home that holds the block answered. Absent: the text lived in this agent
    /// alone.
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
    /// The delivery's id, which every try had. Who has no secret is shown its beginning
    /// alone, which no request can use.
    pub id: String,
    pub attempts: i64,
    pub failed_at: i64,
    /// Why the last try failed.
    pub reason: String,
    /// Of a turn, or of a block of this session. Absent: a block of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// What `loadForeignRows` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ForeignPage {
    pub rows: Vec<ForeignRow>,
    /// Where the next page begins. `null`: this page is the last.
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
    /// How complete the search index is.
    pub enum IndexState {
        /// Nobody has searched yet, so there is no index.
        None = "none",
        /// Some events are not in the index yet.
        Building = "building",
        /// The index holds every event.
        Complete = "complete",
    }
}

words! {
    /// When the agent looks at what was said.
    pub enum LearnAfter {
        /// After each turn, and soon after an append.
        Turn = "turn",
        /// When nothing was said in a conversation for ten minutes.
        Idle = "idle",
        /// When `learn` is called.
        Manual = "manual",
    }
}

words! {
    /// What becomes of the changes that a model proposes.
    pub enum LearnReview {
        /// Changes that the user's own words bear out count at once. The others wait.
        Auto = "auto",
        /// Every change waits for `decideProposal`.
        Propose = "propose",
    }
}

/// How the agent learns from its conversations.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnSettings {
    /// The label of the agent's searchable block that the facts go to.
    pub into: String,
    /// Default: `"turn"`.
    pub after: LearnAfter,
    /// Default: `"propose"`.
    pub review: LearnReview,
    /// How many tokens models may read and write for learning in a day, which ends at
    /// midnight UTC.
    /// Default: `200000`.
    pub max_tokens_per_day: i64,
    /// What else the model is told, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The model that is asked. Left out: `summaryModel`, or the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// With `review: "auto"`, the sources beside the user whose facts count without
    /// anybody's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Vec<TrustedSource>>,
}

/// How the agent learns from its conversations.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnSettingsInput {
    /// The label of the agent's searchable block that the facts go to.
    pub into: String,
    /// Default: `"turn"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<LearnAfter>,
    /// What else the model is told, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How many tokens models may read and write for learning in a day, which ends at
    /// midnight UTC.
    /// Default: `200000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_day: Option<i64>,
    /// The model that is asked. Left out: `summaryModel`, or the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Default: `"propose"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<LearnReview>,
    /// With `review: "auto"`, the sources beside the user whose facts count without
    /// anybody's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Vec<TrustedSource>>,
}

impl LearnSettingsInput {
    #[must_use]
    pub fn new(into: impl Into<String>) -> Self {
        Self {
            into: into.into(),
            after: None,
            instructions: None,
            max_tokens_per_day: None,
            model: None,
            review: None,
            trust: None,
        }
    }
}

setters! {
    LearnSettingsInput:
    after: LearnAfter;
    instructions: impl Into<String>;
    max_tokens_per_day: i64;
    model: impl Into<String>;
    review: LearnReview;
    trust: Vec<TrustedSource>;
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
    /// How many turns of one agent may run at once.
    pub running_turns: i64,
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

/// What a model costs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// The price of a million input tokens.
    pub input: f64,
    /// The price of a million output tokens.
    pub output: f64,
    /// The price of a million input tokens that come from the provider's cache. Left out:
    /// the price of other input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

impl ModelPrice {
    #[must_use]
    pub fn new(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cached_input: None,
        }
    }
}

setters! {
    ModelPrice:
    cached_input: f64;
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

/// What the agent's models cost.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    /// The price of a million input tokens.
    pub input: f64,
    /// The price of a million output tokens.
    pub output: f64,
    /// The price of a million input tokens that come from the provider's cache. Left out:
    /// the price of other input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Models with a price of their own, by their names as `model` takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<BTreeMap<String, ModelPrice>>,
}

impl Prices {
    #[must_use]
    pub fn new(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cached_input: None,
            models: None,
        }
    }
}

setters! {
    Prices:
    cached_input: f64;
    models: BTreeMap<String, ModelPrice>;
}

words! {
    /// When the frozen prompt is rendered again.
    pub enum PromptRefresh {
        /// When `refreshPrompt` is called.
        Manual = "manual",
        /// With every compaction too, which has the provider read everything anew anyway.
        Compaction = "compaction",
        /// With every compaction and at the beginning of every turn too.
        Turn = "turn",
    }
}

words! {
    /// How long a model thinks before it answers.
    pub enum ReasoningEffort {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
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

/// The configuration that holds, and where it comes from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ShownConfig {
    /// The agent's model: `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`. `null`: the
    /// Worker's `MODEL` setting.
    pub model: Option<String>,
    /// The model that writes summaries; `null`: the agent's model.
    pub summary_model: Option<String>,
    /// The most tokens of one answer of the model; `null`: the model's own limit, or
    /// what the provider needs to be told.
    pub max_output_tokens: Option<i64>,
    /// How freely the model chooses its words. Models that refuse it, as most that reason
    /// do, are not told.
    pub temperature: Option<f64>,
    /// How long the model thinks before it answers; `null`: as its provider decides.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// When the frozen prompt is rendered again.
    pub refresh_prompt: PromptRefresh,
    /// What the agent's models cost; `null`: no costs are counted.
    pub prices: Option<Prices>,
    pub system_instructions: Vec<String>,
    /// The most steps that one turn may take.
    /// Default: `10`.
    pub max_steps: i64,
    /// Whether the model gets the `session_search` tool.
    pub session_search: bool,
    /// Whether search also compares meanings, by vectors.
    pub vectors: bool,
    /// The most tokens that a chat turn and its answer take. `null`: the window of the
    /// model, if it is a known one, else 100,000.
    pub max_context_tokens: Option<i64>,
    /// In how many of the newest messages files are sent to a model. Older files are named.
    /// Default: `4`.
    pub keep_media: i64,
    /// Metadata keys that a client can't set on a message.
    pub reserved_metadata_keys: Vec<String>,
    /// What becomes of a message that comes while a turn of its session runs.
    pub when_busy: WhenBusy,
    /// Who is called when a turn is over.
    pub on_turn_end: Option<CallbackTarget>,
    /// Who is called when an entry, a block's text or a document has changed.
    pub on_memory_change: Option<CallbackTarget>,
    /// How much chat turns may spend. A turn beyond a limit is `rate_limited`. `null`: no
    /// limits. `{}` lifts those that are deployed.
    pub limits: Option<Limits>,
    /// How long texts are kept. `null`: until they are deleted. `{}` lifts the rules that are
    /// deployed.
    pub retention: Option<Retention>,
    /// Backups of the whole agent on a schedule, into the bucket `BACKUP_BUCKET`. `null`: none.
    /// `{}` lifts the schedule that is deployed.
    pub backups: Option<BackupPlan>,
    /// Whether and how the agent learns facts from its conversations. `null`: it does not.
    pub learn: Option<LearnSettings>,
    /// The layer that each setting's value comes from.
    pub origins: ConfigOrigins,
    /// What is written wrong in the deployed defaults. The Worker leaves it out.
    pub problems: Vec<DeployedProblem>,
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

words! {
    /// A source that an operator may trust.
    pub enum TrustedSource {
        /// The agent's words, and what the model concluded by itself.
        Agent = "agent",
        /// Results of tools.
        Tool = "tool",
        /// Conversations that came from a file.
        Import = "import",
    }
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
