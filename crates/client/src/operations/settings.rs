//! Settings.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::{MemoryUse, Retention, WhenBusy};
use super::settings_shapes::{
    BackupPlanInput, CallbackTarget, LearnSettingsInput, Prices, PromptRefresh, ReasoningEffort,
    ShownConfig, SummaryService,
};
use super::shapes::Limits;
use crate::operation::Operation;

/// Changes the configuration of the whole agent. Omitted fields are unchanged. `null` removes the
/// agent's own value: the deployed default applies again, or the built-in value.
///
/// Requires the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ConfigureAgent {
    /// Scheduled backups of the whole agent to the bucket `BACKUP_BUCKET`. `null`: none.
    /// `{}` turns off the deployed schedule.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub backups: Option<Option<BackupPlanInput>>,
    /// The number of newest messages whose files are sent to a model. Older files are only
    /// named.
    /// Default: `4`.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub keep_media: Option<Option<i64>>,
    /// Whether and how the agent learns facts from its conversations. `null`: it does not.
    /// `{}` turns off a deployed setting.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub learn: Option<Option<LearnSettingsInput>>,
    /// The spending limits of chat turns. A turn beyond a limit is `rate_limited`. `null`:
    /// no limits. `{}` turns off the deployed ones.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub limits: Option<Option<Limits>>,
    /// The context limit: the maximum number of tokens of a chat turn and its answer.
    /// `null`: the window of the model if it is known, else 100,000.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_context_tokens: Option<Option<i64>>,
    /// The maximum number of tokens of one model answer; `null`: the model's own limit, or
    /// the provider's required value.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_output_tokens: Option<Option<i64>>,
    /// The maximum number of steps of one turn.
    /// Default: `10`.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_steps: Option<Option<i64>>,
    /// The agent's model: `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`. `null`: the
    /// Worker's `MODEL` setting.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<Option<String>>,
    /// The receiver of a call when an entry, a block's text or a document has changed.
    /// `{}`: none, even if a default is deployed.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub on_memory_change: Option<Option<CallbackTarget>>,
    /// The receiver of a call when a turn ends. `{}`: none, even if a default is deployed.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub on_turn_end: Option<Option<CallbackTarget>>,
    /// The prices of the agent's models; `null`: no costs are counted.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub prices: Option<Option<Prices>>,
    /// The effort that the model spends on reasoning before it answers; `null`: as its provider
    /// decides.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub reasoning_effort: Option<Option<ReasoningEffort>>,
    /// The time when the frozen prompt is rendered again.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub refresh_prompt: Option<Option<PromptRefresh>>,
    /// Metadata keys that a client can't set on a message.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub reserved_metadata_keys: Option<Option<Vec<String>>>,
    /// The retention rules. `null`: nothing is deleted automatically. `{}` turns off the
    /// deployed rules.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub retention: Option<Option<Retention>>,
    /// What a request over the base URL lets the model do with the agent's memory, unless the
    /// request's header `x-session-memory` or its token sets something else.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_memory: Option<Option<MemoryUse>>,
    /// Whether the model gets the `session_search` tool.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_search: Option<Option<bool>>,
    /// A service that writes summaries instead of a model. `{}`: none, even if a default is
    /// deployed.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub summarize: Option<Option<SummaryService>>,
    /// The model that writes summaries; `null`: the agent's model.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub summary_model: Option<Option<String>>,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_instructions: Option<Option<Vec<String>>>,
    /// The model's temperature: a higher value makes answers more varied. It is not sent to
    /// models that don't support it, such as most reasoning models.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature: Option<Option<f64>>,
    /// Whether search also compares meanings, by vectors.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub vectors: Option<Option<bool>>,
    /// What to do with a message that arrives while a turn of its session is running.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub when_busy: Option<Option<WhenBusy>>,
}

impl ConfigureAgent {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ConfigureAgent:
    or null backups: BackupPlanInput;
    or null keep_media: i64;
    or null learn: LearnSettingsInput;
    or null limits: Limits;
    or null max_context_tokens: i64;
    or null max_output_tokens: i64;
    or null max_steps: i64;
    or null model: impl Into<String>;
    or null on_memory_change: CallbackTarget;
    or null on_turn_end: CallbackTarget;
    or null prices: Prices;
    or null reasoning_effort: ReasoningEffort;
    or null refresh_prompt: PromptRefresh;
    or null reserved_metadata_keys: Vec<String>;
    or null retention: Retention;
    or null session_memory: MemoryUse;
    or null session_search: bool;
    or null summarize: SummaryService;
    or null summary_model: impl Into<String>;
    or null system_instructions: Vec<String>;
    or null temperature: f64;
    or null vectors: bool;
    or null when_busy: WhenBusy;
}

impl Operation for ConfigureAgent {
    type Output = ShownConfig;
    const NAME: &'static str = "configureAgent";
    const READS: bool = false;
}

/// Shows the configuration of the whole agent, and where each value comes from.
///
/// Without the secret, the addresses of `onTurnEnd` and `onMemoryChange` are shown by their hosts.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GetConfig {}

impl GetConfig {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Operation for GetConfig {
    type Output = ShownConfig;
    const NAME: &'static str = "getConfig";
    const READS: bool = true;
}
