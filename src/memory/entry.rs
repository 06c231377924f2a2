//! An entry of a searchable block.

use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::validity::Validity;
use crate::base::columns::{FromRow, find};
use crate::base::database::Database;
use crate::base::error::Result;

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
