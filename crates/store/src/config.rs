//! The configuration of the whole agent: its model, its system instructions, the limits of
//! its turns.
//!
//! A setting is resolved in three layers: the agent's own settings from `configureAgent`,
//! the settings deployed for all agents ([`base::deployed`]), and the built-in settings.
//! The table stores only the first layer, as one JSON value.
//!
//! A new setting is one line of [`settings`]. Its type validates the value when it is
//! parsed, and describes it in its JSON Schema. A check that needs more than the value
//! itself is in `api/operations/agent.rs`.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::backup_plan::{self, BackupPlan};
use crate::callbacks::CallbackTarget;
use crate::learn_settings::LearnSettings;
use crate::limits::Limits;
use crate::memory_use::MemoryUse;
use crate::model_settings::{OutputLimit, Prices, PromptRefresh, ReasoningEffort, Temperature};
use crate::retention::Retention;
use crate::retention_progress;
use crate::stored::{AGENT, find_stored, write_stored};
use crate::summary_service::SummaryService;
use crate::when_busy::WhenBusy;
use base::database::{Database, atomically};
use base::deployed::DeployedConfigProblem;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, Limit, List};

/// The default limit of a turn's steps.
pub const DEFAULT_MAX_STEPS: i64 = 10;

/// The most texts in one list of system instructions.
pub const MAX_INSTRUCTIONS: usize = 100;

/// The most bytes of all system instructions together, which are part of every model call.
pub const MAX_INSTRUCTIONS_BYTES: usize = 256 << 10;

/// The most metadata keys that an agent may reserve.
pub const MAX_RESERVED_KEYS: usize = 100;

/// In how many of the newest messages files are sent to a model by default.
const DEFAULT_KEEP_MEDIA: i64 = 4;

/// The most messages whose files may be sent.
const MAX_KEEP_MEDIA: i64 = 100;

pub type KeepMedia = Limit<DEFAULT_KEEP_MEDIA, MAX_KEEP_MEDIA>;

/// A request's change of one setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SettingChange<T> {
    /// The field is omitted: the setting is unchanged.
    #[default]
    Keep,
    /// `null`: removes the agent's own value.
    Reset,
    Set(T),
}

impl<T> SettingChange<T> {
    /// The value that the request sets.
    pub fn given(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Reset => None,
        }
    }

    fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Reset => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SettingChange<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(|given| given.map_or(Self::Reset, Self::Set))
    }
}

#[cfg(feature = "testing")]
impl<T: JsonSchema> JsonSchema for SettingChange<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Option::<T>::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }
}

/// The layer that a setting's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigOrigin {
    /// The agent's own setting, from `configureAgent`.
    Agent,
    /// A default deployed for every agent.
    Defaults,
    /// The built-in value, which applies if no other is set.
    BuiltIn,
}

/// Each line is a setting: its type, and its default if neither the agent nor the deployed
/// defaults set it. A setting without a default has a type of `Option`.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $built_in:expr;)*) => {
        /// The configuration that holds.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct Config {
            $($(#[doc = $doc])* pub $name: $type,)*
        }

        /// One layer: the settings that it sets.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct ConfigLayer {
            $(#[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<$type>,)*
        }

        /// The origin of each setting's value.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct ConfigOrigins {
            $(pub $name: ConfigOrigin,)*
        }

        /// Changes the configuration of the whole agent. Omitted fields are unchanged.
        /// `null` removes the agent's own value: the deployed default applies again, or the
        /// built-in value.
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct ConfigureAgent {
            $($(#[doc = $doc])* #[serde(default)] pub $name: SettingChange<$type>,)*
        }

        impl ConfigureAgent {
            /// The layer with these changes.
            pub fn apply(self, layer: ConfigLayer) -> ConfigLayer {
                ConfigLayer {
                    $($name: self.$name.apply(layer.$name),)*
                }
            }
        }

        impl ConfigLayer {
            /// The configuration that holds with these defaults.
            fn resolve(self, defaults: &Self) -> Config {
                let config = Config {
                    $($name: self
                        .$name
                        .or_else(|| defaults.$name.clone())
                        .unwrap_or_else(|| $built_in),)*
                };
                config.without_lifted()
            }

            fn origins(&self, defaults: &Self) -> ConfigOrigins {
                ConfigOrigins {
                    $($name: origin(self.$name.is_some(), defaults.$name.is_some()),)*
                }
            }
        }
    };
}

settings! {
    /// The agent's model: `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`. `null`: the
    /// Worker's `MODEL` setting.
    model: Option<Id> = None;
    /// The model that writes summaries; `null`: the agent's model.
    summary_model: Option<Id> = None;
    /// A service that writes summaries instead of a model. `{}`: none, even if a default is
    /// deployed.
    summarize: Option<SummaryService> = None;
    /// The maximum number of tokens of one model answer; `null`: the model's own limit, or
    /// the provider's required value.
    max_output_tokens: Option<OutputLimit> = None;
    /// The model's temperature: a higher value makes answers more varied. It is not sent to
    /// models that don't support it, such as most reasoning models.
    temperature: Option<Temperature> = None;
    /// The effort that the model spends on reasoning before it answers; `null`: as its provider
    /// decides.
    reasoning_effort: Option<ReasoningEffort> = None;
    /// The time when the frozen prompt is rendered again.
    refresh_prompt: PromptRefresh = PromptRefresh::Manual;
    /// The prices of the agent's models; `null`: no costs are counted.
    prices: Option<Prices> = None;
    system_instructions: List<String, 0, MAX_INSTRUCTIONS> = List::default();
    /// The maximum number of steps of one turn.
    max_steps: Limit<DEFAULT_MAX_STEPS, 100> = Limit::default();
    /// Whether the model gets the `session_search` tool.
    session_search: bool = false;
    /// Whether search also compares meanings, by vectors.
    vectors: bool = false;
    /// The context limit: the maximum number of tokens of a chat turn and its answer.
    /// `null`: the window of the model if it is known, else 100,000.
    max_context_tokens: Option<Count> = None;
    /// The number of newest messages whose files are sent to a model. Older files are only
    /// named.
    keep_media: KeepMedia = Limit::default();
    /// Metadata keys that a client can't set on a message.
    reserved_metadata_keys: List<Id, 0, MAX_RESERVED_KEYS> = List::default();
    /// What to do with a message that arrives while a turn of its session is running.
    when_busy: WhenBusy = WhenBusy::Reject;
    /// What a request over the base URL lets the model do with the agent's memory, unless the
    /// request's header `x-session-memory` or its token sets something else.
    session_memory: MemoryUse = MemoryUse::On;
    /// The receiver of a call when a turn ends. `{}`: none, even if a default is deployed.
    on_turn_end: Option<CallbackTarget> = None;
    /// The receiver of a call when an entry, a block's text or a document has changed.
    /// `{}`: none, even if a default is deployed.
    on_memory_change: Option<CallbackTarget> = None;
    /// The spending limits of chat turns. A turn beyond a limit is `rate_limited`. `null`:
    /// no limits. `{}` turns off the deployed ones.
    limits: Option<Limits> = None;
    /// The retention rules. `null`: nothing is deleted automatically. `{}` turns off the
    /// deployed rules.
    retention: Option<Retention> = None;
    /// Scheduled backups of the whole agent to the bucket `BACKUP_BUCKET`. `null`: none.
    /// `{}` turns off the deployed schedule.
    backups: Option<BackupPlan> = None;
    /// Whether and how the agent learns facts from its conversations. `null`: it does not.
    /// `{}` turns off a deployed setting.
    learn: Option<LearnSettings> = None;
}

impl Config {
    /// Applies `{}`, which turns off a deployed default.
    fn without_lifted(self) -> Self {
        Self {
            on_turn_end: self.on_turn_end.filter(CallbackTarget::is_set),
            on_memory_change: self.on_memory_change.filter(CallbackTarget::is_set),
            learn: self.learn.filter(|learn| !learn.is_off()),
            summarize: self.summarize.filter(|named| named.service.is_some()),
            ..self
        }
    }
}

fn origin(is_agents: bool, is_deployed: bool) -> ConfigOrigin {
    match (is_agents, is_deployed) {
        (true, _) => ConfigOrigin::Agent,
        (false, true) => ConfigOrigin::Defaults,
        (false, false) => ConfigOrigin::BuiltIn,
    }
}

/// The configuration that is deployed for every agent.
#[derive(Default)]
pub struct DeployedConfig {
    pub defaults: ConfigLayer,
    /// The problems in all deployed settings. The Worker ignores the settings with
    /// problems.
    pub problems: Vec<DeployedConfigProblem>,
}

/// The current configuration, and the source of each value.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentConfig {
    #[serde(flatten)]
    config: Config,
    /// The layer that each setting's value comes from.
    origins: ConfigOrigins,
    /// The errors in the deployed defaults. The Worker ignores the invalid fields.
    problems: Vec<DeployedConfigProblem>,
}

impl CurrentConfig {
    /// Conceals URLs for callers without the secret.
    pub fn redact(&mut self) {
        let config = &mut self.config;
        let targets = [&mut config.on_turn_end, &mut config.on_memory_change];
        for target in targets.into_iter().flatten() {
            target.redact();
        }
    }

    fn new(own: ConfigLayer, deployed: &DeployedConfig) -> Self {
        Self {
            origins: own.origins(&deployed.defaults),
            config: own.resolve(&deployed.defaults),
            problems: deployed.problems.clone(),
        }
    }
}

/// Checks the number and the size of the system instructions in a request.
pub fn check_instructions<'a>(instructions: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let bytes: usize = instructions.into_iter().map(String::len).sum();
    if bytes > MAX_INSTRUCTIONS_BYTES {
        return Err(Error::payload_too_large(
            "All of `systemInstructions`",
            MAX_INSTRUCTIONS_BYTES,
            bytes,
        )
        .with_field("systemInstructions"));
    }
    Ok(())
}

const KEY: &str = AGENT;

/// The effective configuration of this agent.
pub fn load_config(db: &dyn Database, deployed: &DeployedConfig) -> Result<Config> {
    Ok(load_own(db)?.resolve(&deployed.defaults))
}

/// The configuration in the form of `getConfig`.
pub fn show_config(db: &dyn Database, deployed: &DeployedConfig) -> Result<CurrentConfig> {
    Ok(CurrentConfig::new(load_own(db)?, deployed))
}

/// The agent's own settings, without the deployed ones.
pub fn load_own(db: &dyn Database) -> Result<ConfigLayer> {
    match find_stored(db, KEY)? {
        Some(json) => json::decode(&json).map_err(|_| Error::corrupt_row(KEY, "configuration")),
        None => Ok(ConfigLayer::default()),
    }
}

/// Loads, changes and stores the agent's own settings, in one transaction.
pub fn change_config(
    db: &dyn Database,
    deployed: &DeployedConfig,
    change: ConfigureAgent,
) -> Result<CurrentConfig> {
    atomically(db, || {
        let field = match (change.limits.given(), &change.prices) {
            (Some(_), _) => Some("limits.costPerDay"),
            (None, SettingChange::Reset) => Some("prices"),
            (None, _) => None,
        };
        let keeps_less = change.retention.given().is_some();
        let plans_backups = change.backups != SettingChange::Keep;
        let own = change.apply(load_own(db)?);
        write_stored(db, KEY, &own)?;
        if keeps_less {
            retention_progress::ask(db)?;
        }
        if plans_backups {
            backup_plan::ask(db)?;
        }
        let shown = CurrentConfig::new(own, deployed);
        let config = &shown.config;
        if let (Some(field), Some(limits)) = (field, &config.limits) {
            limits.check_countable(config.prices.as_ref(), field)?;
        }
        Ok(shown)
    })
}
