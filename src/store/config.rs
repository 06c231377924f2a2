//! What belongs to the whole agent: which model, what it is told, how far a
//! turn may go. Stored as one JSON value; a field that was never set has its
//! default.

use serde::{Deserialize, Serialize};

use crate::base::database::{Database, atomically, find_row};
use crate::base::error::{Error, Result};

/// Steps of one turn when nothing else is said.
pub const DEFAULT_MAX_STEPS: i64 = 10;

/// Texts of one list of system instructions.
pub const MAX_INSTRUCTIONS: usize = 100;

/// Bytes of all system instructions together: they go with every model call.
pub const MAX_INSTRUCTIONS_BYTES: usize = 256 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// `null`: the Worker's `MODEL`.
    pub model: Option<String>,
    pub system_instructions: Vec<String>,
    pub max_steps: i64,
    /// Whether the model gets the `session_search` tool.
    pub session_search: bool,
    /// Whether search also compares meanings.
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

/// Holds instructions that a caller sends against what a model is to be told.
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
    let sql = "SELECT value FROM cf_agents_config WHERE key = ?1";
    let Some(row) = find_row(db, sql, &[KEY.into()])? else {
        return Ok(Config::default());
    };
    serde_json::from_str(row.text(0)?).map_err(|_| Error::corrupt_row(KEY, "configuration"))
}

/// Loads, changes and stores in one transaction.
pub fn change_config(db: &dyn Database, change: impl FnOnce(&mut Config)) -> Result<Config> {
    atomically(db, || {
        let mut config = load_config(db)?;
        change(&mut config);
        let value =
            serde_json::to_string(&config).map_err(|error| Error::storage(error.to_string()))?;
        db.run(
            "INSERT INTO cf_agents_config (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[KEY.into(), value.into()],
        )?;
        Ok(config)
    })
}
