//! The result of an entry search: the valid entries, and those that are no longer valid.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::Origin;
use super::validity::Validity;
use base::json::RawValue;
use base::tags::{Metadata, Tags};
use search::snippet::Highlight;

/// An entry that a search found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundEntry {
    /// The block that the entry is in, if several were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub key: Option<String>,
    pub title: Option<String>,
    pub content: String,
    /// About 240 characters of the content, unchanged.
    pub snippet: String,
    /// Start and end of each matching word in the snippet, in UTF-16 units.
    pub highlights: Vec<Highlight>,
    /// Comparable only with other scores of the same search.
    pub score: f64,
    /// The custom data of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The source of the text. Absent if a service stores the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The events that the text comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The time when the text was written. Absent if a service stores the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// A fact that matches the query and is no longer true.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PastEntry {
    /// The block that the entry is in, if several were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub key: String,
    pub title: Option<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// The entries that a search in another backend found.
#[derive(Debug, Deserialize)]
pub struct RemoteEntries {
    /// Best first.
    pub results: Vec<FoundEntry>,
    #[serde(default)]
    pub past: Vec<PastEntry>,
    /// How the backend's vector search took part, as the backend reports it.
    pub vectors: Option<Box<RawValue>>,
    /// Whether the backend's search was cut short.
    #[serde(default, rename = "truncated")]
    pub is_cut: bool,
}
