//! The rows of the agent's own that the file of the whole agent contains, by the list of
//! tables.

use super::table_fates::{InAgentFile, RowOwner};
use super::tables::TABLES;
use crate::stored::IN_AGENT_FILE;
use base::columns::find_value;
use base::database::{Database, Delete, TableName};
use base::error::Result;

/// The tables with rows of the agent's own that the file of the whole agent contains, and
/// the condition for such a row.
fn of_the_agents_file() -> impl Iterator<Item = (&'static str, String)> {
    TABLES.iter().filter_map(|table| {
        let condition = match (table.agent_file, table.owner) {
            (InAgentFile::Nothing(_), _) => None,
            // The values are chosen by their keys.
            (InAgentFile::Lines(_), _) if table.name == "cf_agents_config" => {
                let keys = IN_AGENT_FILE.join("', '");
                Some(format!("key IN ('{keys}')"))
            }
            (InAgentFile::Lines(_), _) => Some("true".to_owned()),
            (InAgentFile::AsInSessions, RowOwner::Session("scope")) => {
                Some("scope = ''".to_owned())
            }
            (InAgentFile::AsInSessions, RowOwner::Entry(column)) => Some(format!(
                "{column} IN (SELECT number FROM cf_agents_entries WHERE scope = '')"
            )),
            (InAgentFile::AsInSessions, _) => None,
        }?;
        Some((table.name, condition))
    })
}

/// Deletes the rows of the agent's own that a file of the whole agent would contain. Part
/// of a transaction.
pub fn delete_agents_own(db: &dyn Database) -> Result<()> {
    for (table, condition) in of_the_agents_file() {
        Delete::from(TableName::named(table), &condition, &[]).run(db)?;
    }
    Ok(())
}

/// Whether there is nothing that a file of the whole agent would contain: no row of the
/// agent's own, and no session.
pub fn is_agent_empty(db: &dyn Database) -> Result<bool> {
    let sessions = ("cf_agents_sessions", "true".to_owned());
    for (table, condition) in of_the_agents_file().chain([sessions]) {
        let sql = format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1");
        if !db.rows(&sql, &[])?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the agent has more than `known` sessions. Reads no row beyond the first one more.
pub fn has_more_sessions(db: &dyn Database, known: i64) -> Result<bool> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM cf_agents_sessions LIMIT {known} + 1)");
    let count: Option<i64> = find_value(db, &sql, &[])?;
    Ok(count.unwrap_or(0) > known)
}
