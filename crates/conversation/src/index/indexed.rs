//! Computes which events the index must have, for a check of the index.

use crate::index::progress::{NOTHING, StoredProgress, find_state};
use base::database::Database;
use base::error::Result;
use base::json::MAX_INTEGER;

/// SQL: the `seq` from which the events of a session `s` are in the index. Must agree with
/// [`StoredProgress::find_from`].
pub fn indexed_from_sql(db: &dyn Database) -> Result<String> {
    let (number, from) = match find_state(db)? {
        None | Some(StoredProgress::OfSessions { .. }) => (MAX_INTEGER, NOTHING),
        Some(StoredProgress::Whole(_)) => return Ok("0".to_owned()),
        Some(StoredProgress::Building(cursor)) => (cursor.number, cursor.from),
    };
    Ok(format!(
        "coalesce((SELECT p.indexed_from
                     FROM cf_agents_search_progress AS p
                    WHERE p.number = s.number),
                  CASE
                    WHEN s.number > {number} THEN 0
                    WHEN s.number = {number} THEN {from}
                    ELSE {NOTHING}
                  END)"
    ))
}
