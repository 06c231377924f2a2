//! What an event's `tool` column says: one set of fields, read as far as its reader
//! needs them parsed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::ids::Id;
use crate::base::json::JsonObject;

/// One call of a tool, as a model asked for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    pub id: Id,
    pub name: Id,
    /// The arguments as an object, not as text.
    pub arguments: JsonObject,
}

/// The part of an event that only tool events have, as it is stored and shown: the
/// calls, or what answers one of them. `Calls`, `Text` and `Flag` are how much of it
/// is parsed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFields<Calls, Text, Flag = bool> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Calls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<Flag>,
}

impl<Calls, Text, Flag> Default for ToolFields<Calls, Text, Flag> {
    fn default() -> Self {
        Self {
            tool_calls: None,
            tool_call_id: None,
            tool_name: None,
            is_error: None,
        }
    }
}

/// Handed on as it is stored.
pub type StoredTool<'a> = ToolFields<&'a RawValue, &'a RawValue, &'a RawValue>;

/// Read for a message: what is stored is shown, whatever its ids are.
pub type RenderedTool = ToolFields<Vec<ShownCall>, String>;

/// Read for a model, which is told of sound ids alone.
pub type CheckedTool = ToolFields<Vec<ToolCall>, Id>;

#[derive(Deserialize)]
pub struct ShownCall {
    pub id: String,
    pub name: String,
    pub arguments: Box<RawValue>,
}
