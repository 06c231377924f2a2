//! Settings: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::later_shapes::{Retention, WhenBusy};
use super::shapes::Limits;

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

/// Who is called: a service binding, or an address whose origin is in `TOOL_ORIGINS`. One of
/// the two; `{}`: nobody.
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
    pub summarize: ConfigOrigin,
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
    /// When the block that is learnt into is put in order.
    pub enum LearnOrder {
        /// When `consolidate` is called.
        Manual = "manual",
        /// Ten minutes after the last change, and once a day at most.
        Idle = "idle",
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
    /// Default: `"turn"`.
    pub after: LearnAfter,
    /// Default: `"propose"`.
    pub review: LearnReview,
    /// How many tokens models may read and write for learning in a day, which ends at
    /// midnight UTC.
    /// Default: `200000`.
    pub max_tokens_per_day: i64,
    /// When the block is put in order by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<LearnOrder>,
    /// What else the model is told, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The label of the agent's searchable block that the facts go to. `{}`, without it and
    /// all else, switches learning off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The model that is asked. Left out: the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A writable block of the agent that consolidation writes anew, from the newest entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// With `review: "auto"`, the sources beside the user whose facts count without
    /// anybody's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Vec<TrustedSource>>,
}

/// How the agent learns from its conversations.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnSettingsInput {
    /// Default: `"turn"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<LearnAfter>,
    /// When the block is put in order by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<LearnOrder>,
    /// What else the model is told, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The label of the agent's searchable block that the facts go to. `{}`, without it and
    /// all else, switches learning off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// How many tokens models may read and write for learning in a day, which ends at
    /// midnight UTC.
    /// Default: `200000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_day: Option<i64>,
    /// The model that is asked. Left out: the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A writable block of the agent that consolidation writes anew, from the newest entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
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
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    LearnSettingsInput:
    after: LearnAfter;
    consolidate: LearnOrder;
    instructions: impl Into<String>;
    into: impl Into<String>;
    max_tokens_per_day: i64;
    model: impl Into<String>;
    profile: impl Into<String>;
    review: LearnReview;
    trust: Vec<TrustedSource>;
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
    /// A service that writes summaries in place of a model. `{}`: none, also where a default
    /// is deployed.
    pub summarize: Option<SummaryService>,
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
    /// Who is called when a turn is over. `{}`: nobody, also where a default is deployed.
    pub on_turn_end: Option<CallbackTarget>,
    /// Who is called when an entry, a block's text or a document has changed. `{}`: nobody,
    /// also where a default is deployed.
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
    /// `{}` switches off what is deployed.
    pub learn: Option<LearnSettings>,
    /// The layer that each setting's value comes from.
    pub origins: ConfigOrigins,
    /// What is written wrong in the deployed defaults. The Worker leaves it out.
    pub problems: Vec<DeployedProblem>,
}

/// The service that writes summaries. `{}`: none, also where a default is deployed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SummaryService {
    /// The service binding's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl SummaryService {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    SummaryService:
    service: impl Into<String>;
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
