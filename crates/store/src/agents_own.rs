//! The rows of the agent's own that the file of the whole agent contains, by the list of
//! tables.

use super::table_fates::{InAgentFile, RowOwner};
use super::tables::TABLES;
use crate::stored::IN_AGENT_FILE;
use base::database::{Database, Delete, TableName};
use base::error::Result;

/// The tables with rows of the agent's own that the file of the whole agent contains, and
/// the condition for such a row.
fn of_the_agents_file() -> impl Iterator<Item = (&'static str, String)> {
    TABLES.iter().filter_map(|table| {
        let condition = match (table.agent_file, table.owner) {
            (InAgentFile::Nothing(_), _) => None,
            // Only values with certain keys are exported.
            (InAgentFile::Lines(_), _) if table.name == "cf_agents_config" => {
                let keys = IN_AGENT_FILE.join("', '");
                Some(format!("key IN ('{keys}')"))
            }
            (InAgentFile::Lines(_), _) => Some("true".to_owned()),
            (InAgentFile::AsInSessions, RowOwner::Session("scope") | RowOwner::Entry(_)) => {
                table.condition_in("''")
            }
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

/// Whether there is no row of the agent's own that a file of the whole agent would contain.
pub fn has_no_own(db: &dyn Database) -> Result<bool> {
    for (table, condition) in of_the_agents_file() {
        let sql = format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1");
        if !db.rows(&sql, &[])?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
