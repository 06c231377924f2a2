//! The words of a query, weighed by how rare each is in an index.

use std::collections::HashMap;

use super::document::EVERY_DOCUMENT;
use super::query::WordQuery;
use crate::base::columns::load;
use crate::base::database::{Database, SqlValue};
use crate::base::error::Result;
use crate::base::json;

/// A word of the query with its rarity.
#[derive(Clone)]
pub struct QueryTerm {
    pub stem: String,
    pub rarity: f64,
    /// How many texts hold it.
    pub found: i64,
}

impl QueryTerm {
    /// A word that stands in `found` of `all` texts.
    pub fn new(stem: String, found: i64, all: i64) -> Self {
        Self {
            stem,
            rarity: rarity(found, all),
            found,
        }
    }
}

/// Rarity of a word that stands in `found` of `all` events.
pub fn rarity(found: i64, all: i64) -> f64 {
    let (found, all) = (found as f64, all.max(found) as f64);
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln().sqrt()
}

/// A query's terms, each with its rarity in an index. `words_table` counts the index's
/// words; its name is ours, never a caller's.
pub fn load_terms(
    db: &dyn Database,
    words_table: &'static str,
    query: &WordQuery,
) -> Result<Vec<QueryTerm>> {
    let stems = query.terms();
    let mut wanted: Vec<&str> = stems.iter().map(String::as_str).collect();
    wanted.push(EVERY_DOCUMENT);
    let sql = format!(
        "SELECT wanted.value, found.doc
           FROM json_each(?1) AS wanted
          CROSS JOIN {words_table} AS found
             ON found.term = wanted.value"
    );
    let rows = load(db, &sql, &[SqlValue::Text(json::encode(&wanted)?)])?;
    let counts: HashMap<String, i64> = rows.into_iter().collect();
    let all = counts.get(EVERY_DOCUMENT).copied().unwrap_or(0);
    Ok(stems
        .into_iter()
        .map(|stem| {
            let found = counts.get(&stem).copied().unwrap_or(0);
            QueryTerm::new(stem, found, all)
        })
        .collect())
}
