//! What an event's `tool` column says, parsed.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    pub tool_calls: Option<Vec<Call>>,
    pub tool_call_id: Option<String>,
    pub tool_name: Option<String>,
    pub is_error: Option<bool>,
}

#[derive(Deserialize)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Box<RawValue>,
}
