//! An entry of a searchable block.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::origin::Origin;
use super::validity::Validity;
use base::columns::{FromRow, find};
use base::database::Database;
use base::error::Result;
use base::json::written_bytes;
use base::tags::{Metadata, Tags};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub key: String,
    pub title: Option<String>,
    pub content: String,
    pub created_at: i64,
    pub updated_at: i64,
    /// The custom data of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The source of the text.
    pub source: Origin,
    /// The ids of the events that the text comes from.
    #[serde(default)]
    pub events: Vec<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

impl Entry {
    /// About how many bytes an answer needs for it.
    pub fn written_bytes(&self) -> usize {
        written_bytes(&self.content)
            + self.tags.written_bytes()
            + Metadata::bytes_of(self.metadata.as_ref())
    }
}

/// When the entry of this key was last written; 0: there is none.
pub fn find_written_at(db: &dyn Database, block: &Definition, key: &str) -> Result<i64> {
    let written_at: Option<(i64, i64)> = find_by_key(db, "updated_at, number", block, key)?;
    Ok(written_at.map_or(0, |(updated_at, _)| updated_at))
}

/// The entry of this key, read from these columns of its row.
pub fn find_by_key<T>(
    db: &dyn Database,
    columns: &str,
    block: &Definition,
    key: &str,
) -> Result<Option<T>>
where
    T: for<'r> FromRow<'r>,
{
    let sql = format!(
        "SELECT {columns}
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3"
    );
    let params = [
        block.scope.as_str().into(),
        block.content_key().into(),
        key.into(),
    ];
    find(db, &sql, &params)
}
