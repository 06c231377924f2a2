//! Settings: the shapes.
//!
//! `node scripts/crate.mjs` writes this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::later_shapes::{MemoryUse, Retention, WhenBusy};
use super::shapes::Limits;

/// The agent's backup schedule, and the number of backups to retain.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupPlan {
    /// The number of this agent's newest backups to retain in the bucket.
    /// Default: `7`.
    pub keep: i64,
    /// The interval between backups in hours. Default: no schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_hours: Option<i64>,
}

/// The agent's backup schedule, and the number of backups to retain.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct BackupPlanInput {
    /// The interval between backups in hours. Default: no schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_hours: Option<i64>,
    /// The number of this agent's newest backups to retain in the bucket.
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

/// The receiver of a call: either a service binding, or a URL whose origin is in
/// `TOOL_ORIGINS`; `{}`: none.
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
        /// The agent's own setting, from `configureAgent`.
        Agent = "agent",
        /// A default deployed for every agent.
        Defaults = "defaults",
        /// The built-in value, which applies if no other is set.
        BuiltIn = "built-in",
    }
}

/// The origin of each setting's value.
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
    pub session_memory: ConfigOrigin,
    pub on_turn_end: ConfigOrigin,
    pub on_memory_change: ConfigOrigin,
    pub limits: ConfigOrigin,
    pub retention: ConfigOrigin,
    pub backups: ConfigOrigin,
    pub learn: ConfigOrigin,
}

/// A part of the deployed defaults that the Worker ignores.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeployedProblem {
    /// The variable or the file that contains it.
    pub source: String,
    /// The field, such as `maxSteps` or `blocks[1].kind`. Empty: the whole.
    pub field: String,
    pub message: String,
}

words! {
    /// When the agent's learning passes run.
    pub enum LearnAfter {
        /// After each turn, and soon after an append.
        Turn = "turn",
        /// After ten minutes without messages in a conversation.
        Idle = "idle",
        /// When `learn` is called.
        Manual = "manual",
    }
}

words! {
    /// When the block of learned facts is consolidated.
    pub enum LearnOrder {
        /// When `consolidate` is called.
        Manual = "manual",
        /// Ten minutes after the last change, and at most once a day.
        Idle = "idle",
    }
}

words! {
    /// What to do with the changes that a model proposes.
    pub enum LearnReview {
        /// Changes that the user's own words support are applied immediately. The others need
        /// approval.
        Auto = "auto",
        /// Every change waits for `decideProposal`.
        Propose = "propose",
    }
}

/// The settings of learning from conversations.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnSettings {
    /// Default: `"turn"`.
    pub after: LearnAfter,
    /// Default: `"propose"`.
    pub review: LearnReview,
    /// The token limit for learning per day, which ends at midnight UTC.
    /// Default: `200000`.
    pub max_tokens_per_day: i64,
    /// When the block is consolidated automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<LearnOrder>,
    /// Additional instructions for the model, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The label of the agent's searchable block for the facts. `{}`, without this or other
    /// fields, turns learning off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The model to use. Default: the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A writable block of the agent that consolidation rewrites from the newest entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// With `review: "auto"`, the sources in addition to the user whose facts are applied
    /// without approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Vec<TrustedSource>>,
}

/// The settings of learning from conversations.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LearnSettingsInput {
    /// Default: `"turn"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<LearnAfter>,
    /// When the block is consolidated automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consolidate: Option<LearnOrder>,
    /// Additional instructions for the model, such as which facts matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The label of the agent's searchable block for the facts. `{}`, without this or other
    /// fields, turns learning off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The token limit for learning per day, which ends at midnight UTC.
    /// Default: `200000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_day: Option<i64>,
    /// The model to use. Default: the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A writable block of the agent that consolidation rewrites from the newest entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Default: `"propose"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<LearnReview>,
    /// With `review: "auto"`, the sources in addition to the user whose facts are applied
    /// without approval.
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

/// The prices of a model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// The price of a million input tokens.
    pub input: f64,
    /// The price of a million output tokens.
    pub output: f64,
    /// The price of a million input tokens from the provider's cache. Default: the price of
    /// other input tokens.
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

/// The prices of the agent's models.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    /// The price of a million input tokens.
    pub input: f64,
    /// The price of a million output tokens.
    pub output: f64,
    /// The price of a million input tokens from the provider's cache. Default: the price of
    /// other input tokens.
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
    /// The time when the frozen prompt is rendered again.
    pub enum PromptRefresh {
        /// When `refreshPrompt` is called.
        Manual = "manual",
        /// Also after each compaction, when the provider's cache is invalid anyway.
        Compaction = "compaction",
        /// Also after each compaction and at the start of each turn.
        Turn = "turn",
    }
}

words! {
    /// The effort that a model spends on reasoning before it answers.
    pub enum ReasoningEffort {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

/// The current configuration, and the source of each value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ShownConfig {
    /// The agent's model: `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`. `null`: the
    /// Worker's `MODEL` setting.
    pub model: Option<String>,
    /// The model that writes summaries; `null`: the agent's model.
    pub summary_model: Option<String>,
    /// A service that writes summaries instead of a model. `{}`: none, even if a default is
    /// deployed.
    pub summarize: Option<SummaryService>,
    /// The maximum number of tokens of one model answer; `null`: the model's own limit, or
    /// the provider's required value.
    pub max_output_tokens: Option<i64>,
    /// The model's temperature: a higher value makes answers more varied. It is not sent to
    /// models that don't support it, such as most reasoning models.
    pub temperature: Option<f64>,
    /// The effort that the model spends on reasoning before it answers; `null`: as its provider
    /// decides.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The time when the frozen prompt is rendered again.
    pub refresh_prompt: PromptRefresh,
    /// The prices of the agent's models; `null`: no costs are counted.
    pub prices: Option<Prices>,
    pub system_instructions: Vec<String>,
    /// The maximum number of steps of one turn.
    /// Default: `10`.
    pub max_steps: i64,
    /// Whether the model gets the `session_search` tool.
    pub session_search: bool,
    /// Whether search also compares meanings, by vectors.
    pub vectors: bool,
    /// The context limit: the maximum number of tokens of a chat turn and its answer.
    /// `null`: the window of the model if it is known, else 100,000.
    pub max_context_tokens: Option<i64>,
    /// The number of newest messages whose files are sent to a model. Older files are only
    /// named.
    /// Default: `4`.
    pub keep_media: i64,
    /// Metadata keys that a client can't set on a message.
    pub reserved_metadata_keys: Vec<String>,
    /// What to do with a message that arrives while a turn of its session is running.
    pub when_busy: WhenBusy,
    /// What a request over the base URL lets the model do with the agent's memory, unless the
    /// request's header `x-session-memory` or its token sets something else.
    pub session_memory: MemoryUse,
    /// The receiver of a call when a turn ends. `{}`: none, even if a default is deployed.
    pub on_turn_end: Option<CallbackTarget>,
    /// The receiver of a call when an entry, a block's text or a document has changed.
    /// `{}`: none, even if a default is deployed.
    pub on_memory_change: Option<CallbackTarget>,
    /// The spending limits of chat turns. A turn beyond a limit is `rate_limited`. `null`:
    /// no limits. `{}` turns off the deployed ones.
    pub limits: Option<Limits>,
    /// The retention rules. `null`: nothing is deleted automatically. `{}` turns off the
    /// deployed rules.
    pub retention: Option<Retention>,
    /// Scheduled backups of the whole agent to the bucket `BACKUP_BUCKET`. `null`: none.
    /// `{}` turns off the deployed schedule.
    pub backups: Option<BackupPlan>,
    /// Whether and how the agent learns facts from its conversations. `null`: it does not.
    /// `{}` turns off a deployed setting.
    pub learn: Option<LearnSettings>,
    /// The layer that each setting's value comes from.
    pub origins: ConfigOrigins,
    /// The errors in the deployed defaults. The Worker ignores the invalid fields.
    pub problems: Vec<DeployedProblem>,
}

/// The service that writes summaries. `{}`: none, even if a default is deployed.
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
