//! What a request in a provider's API lets the model do with the agent's memory.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

/// From the least to the most.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemoryUse {
    /// Neither the prompt nor a tool.
    Off,
    /// The prompt, and the tools that change nothing.
    Read,
    /// The prompt and all tools.
    #[default]
    On,
}
