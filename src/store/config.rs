//! The configuration of the whole agent: its model, its system instructions, the limits
//! of its turns. It is stored as one JSON value. A field that was never set has its
//! default.
//!
//! A new setting needs a field of [`Config`], with its default, and a field of
//! [`ConfigureAgent`], with the checks on its value.

use serde::{Deserialize, Serialize};

use crate::base::database::{Database, atomically};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{self, Limit, nullable, nullable_list};
use crate::store::stored::{find_stored, write_stored};

/// The most steps of a turn, unless the agent's configuration says otherwise.
pub const DEFAULT_MAX_STEPS: i64 = 10;

/// The most texts in one list of system instructions.
pub const MAX_INSTRUCTIONS: usize = 100;

/// The most bytes of all system instructions together: every model call carries them.
pub const MAX_INSTRUCTIONS_BYTES: usize = 256 << 10;

/// The most metadata keys that an agent may reserve.
const MAX_RESERVED_KEYS: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// The agent's model. `null`: the Worker's `MODEL` setting.
    pub model: Option<String>,
    pub system_instructions: Vec<String>,
    pub max_steps: i64,
    /// Whether the model gets the `session_search` tool.
    pub session_search: bool,
    /// Whether search also compares meanings, by vectors.
    pub vectors: bool,
    /// Metadata keys that a client can't set on a message.
    pub reserved_metadata_keys: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            system_instructions: Vec::new(),
            max_steps: DEFAULT_MAX_STEPS,
            session_search: false,
            vectors: false,
            reserved_metadata_keys: Vec::new(),
        }
    }
}

/// Changes the configuration of the whole agent. A field that is left out keeps its
/// value; `null` restores the default.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigureAgent {
    /// `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`. `null`: the Worker's
    /// `MODEL` setting.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    pub model: Option<Option<Id>>,
    #[serde(
        default,
        deserialize_with = "nullable_list::<_, _, 0, MAX_INSTRUCTIONS>"
    )]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>", length(max = MAX_INSTRUCTIONS)))]
    pub system_instructions: Option<Option<Vec<String>>>,
    /// The most steps that one turn may take.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Limit<10, 100>>"))]
    pub max_steps: Option<Option<Limit<10, 100>>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub session_search: Option<Option<bool>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub vectors: Option<Option<bool>>,
    #[serde(
        default,
        deserialize_with = "nullable_list::<_, _, 0, MAX_RESERVED_KEYS>"
    )]
    #[cfg_attr(test, schemars(with = "Option<Vec<Id>>", length(max = MAX_RESERVED_KEYS)))]
    pub reserved_metadata_keys: Option<Option<Vec<Id>>>,
}

impl ConfigureAgent {
    /// The configuration with these changes.
    pub fn apply(self, config: Config) -> Config {
        let default = Config::default();
        let text = |id: Id| id.as_str().to_owned();
        let texts = |ids: Vec<Id>| ids.into_iter().map(text).collect();
        let model = self.model.map(|model| model.map(|id| Some(text(id))));
        let max_steps = self.max_steps.map(|steps| steps.map(|steps| steps.0));
        let reserved_keys = self.reserved_metadata_keys.map(|keys| keys.map(texts));
        Config {
            model: choose(model, config.model, default.model),
            system_instructions: choose(
                self.system_instructions,
                config.system_instructions,
                default.system_instructions,
            ),
            max_steps: choose(max_steps, config.max_steps, default.max_steps),
            session_search: choose(
                self.session_search,
                config.session_search,
                default.session_search,
            ),
            vectors: choose(self.vectors, config.vectors, default.vectors),
            reserved_metadata_keys: choose(
                reserved_keys,
                config.reserved_metadata_keys,
                default.reserved_metadata_keys,
            ),
        }
    }
}

/// A field that is left out keeps its value; `null` restores the default.
fn choose<T>(given: Option<Option<T>>, before: T, default: T) -> T {
    given.map_or(before, |given| given.unwrap_or(default))
}

/// Checks the number and the size of the system instructions that a caller sends.
pub fn check_instructions<'a>(instructions: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let bytes: usize = instructions.into_iter().map(String::len).sum();
    if bytes > MAX_INSTRUCTIONS_BYTES {
        return Err(Error::payload_too_large(
            "All of `systemInstructions`",
            MAX_INSTRUCTIONS_BYTES,
            bytes,
        )
        .with("field", "systemInstructions"));
    }
    Ok(())
}

const KEY: &str = "agent";

pub fn load_config(db: &dyn Database) -> Result<Config> {
    match find_stored(db, KEY)? {
        Some(json) => json::decode(&json).map_err(|_| Error::corrupt_row(KEY, "configuration")),
        None => Ok(Config::default()),
    }
}

/// Loads, changes and stores the configuration in one transaction.
pub fn change_config(db: &dyn Database, change: impl FnOnce(Config) -> Config) -> Result<Config> {
    atomically(db, || {
        let config = change(load_config(db)?);
        write_stored(db, KEY, &config)?;
        Ok(config)
    })
}
