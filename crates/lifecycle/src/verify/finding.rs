//! A finding of a check: a code and the location of the damaged row, never the row's
//! content.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::checks::FindingCode;

/// The place of a damaged row: the ids that name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FindingLocation {
    /// The session that the row belongs to. Absent: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The id of the event, the summary, the media, the proposal, the setting or the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The event's `seq`, or the row's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// The block, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The entry or the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// A damaged row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    pub code: FindingCode,
    /// The same as a sentence.
    message: &'static str,
    /// The table of the row; docs/storage.md describes the tables.
    pub table: &'static str,
    #[serde(flatten)]
    pub location: FindingLocation,
}

impl Finding {
    pub fn new(code: FindingCode, table: &'static str, location: FindingLocation) -> Self {
        Self {
            code,
            message: code.message(),
            table,
            location,
        }
    }
}
