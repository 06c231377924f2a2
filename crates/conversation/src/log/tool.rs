//! An event's `tool` column: one set of fields, parsed only as deeply as its reader
//! needs.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::ids::Id;
use base::json::{JsonObject, RawValue};

/// One call of a tool, as a model asked for it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    pub id: Id,
    pub name: Id,
    /// The arguments as a JSON object, not as text.
    pub arguments: JsonObject,
}

/// The fields of tool events, as stored and shown: the calls, or the fields that link a result to
/// its call. The types `Calls`, `Text` and `Flag` determine how deeply each field is parsed.
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

/// SQL: the path in the `tool` column of a result to the id of the call.
pub const CALL_ID_PATH: &str = "$.toolCallId";

/// For a reader that copies the stored JSON.
pub type StoredTool<'a> = ToolFields<&'a RawValue, &'a RawValue, &'a RawValue>;

/// For a message, which shows calls with any ids.
pub type RenderedTool = ToolFields<Vec<ShownCall>, String>;

/// For a model, which may see only valid ids.
pub type CheckedTool = ToolFields<Vec<ToolCall>, Id>;

#[derive(Deserialize)]
pub struct ShownCall {
    pub id: String,
    pub name: String,
    pub arguments: Box<RawValue>,
}
