//! The queries of a caller: one, or several.

use base::error::{Error, Result};
use search::query::MAX_QUERIES;

/// The queries of a request that has either `query` or `queries`.
pub fn one_or_several(query: Option<String>, queries: Option<Vec<String>>) -> Result<Vec<String>> {
    match (query, queries) {
        (Some(_), Some(_)) => Err(Error::invalid(
            "queries",
            "Set either `query` or `queries`, not both.",
        )),
        (Some(query), None) => Ok(vec![query]),
        (None, Some(queries)) => Ok(queries),
        (None, None) => Err(Error::invalid(
            "query",
            format!("Set `query`, or 1 to {MAX_QUERIES} `queries`."),
        )),
    }
}
