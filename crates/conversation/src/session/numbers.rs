//! How many sessions there are.

use base::columns::find_value;
use base::database::Database;
use base::error::Result;

/// Whether the agent has more than `known` sessions. Reads at most one row more than `known`.
pub fn has_more_sessions(db: &dyn Database, known: i64) -> Result<bool> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM cf_agents_sessions LIMIT {known} + 1)");
    let count: Option<i64> = find_value(db, &sql, &[])?;
    Ok(count.unwrap_or(0) > known)
}

/// Whether the agent has a session.
pub fn has_sessions(db: &dyn Database) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_sessions WHERE true LIMIT 1";
    Ok(!db.rows(sql, &[])?.is_empty())
}
