//! An entry of a searchable block.

use serde::{Deserialize, Serialize};

use super::validity::Validity;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub key: String,
    pub title: Option<String>,
    pub content: String,
    pub created_at: i64,
    pub updated_at: i64,
    #[serde(flatten)]
    pub validity: Validity,
}
