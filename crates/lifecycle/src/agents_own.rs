//! The rows of the agent's own that the file of the whole agent contains, by the list of
//! tables.

use super::tables::tables;
use base::database::{Database, Delete};
use base::error::Result;
use base::tables::{AgentFileRule, RowOwner, Table};
use store::stored::IN_AGENT_FILE;
use store::tables::CONFIG;

/// The tables with rows of the agent's own that the file of the whole agent contains, and
/// the condition for such a row.
fn of_the_agents_file() -> impl Iterator<Item = (&'static Table, String)> {
    tables().filter_map(|table| {
        let condition = match (table.agent_file, table.owner) {
            (AgentFileRule::Nothing(_), _) => None,
            // Only values with certain keys are exported.
            (AgentFileRule::Lines(_), _) if table == CONFIG => {
                let keys = IN_AGENT_FILE.join("', '");
                Some(format!("key IN ('{keys}')"))
            }
            (AgentFileRule::Lines(_), _) => Some("true".to_owned()),
            (AgentFileRule::AsInSessions, RowOwner::Session("scope") | RowOwner::Through(..)) => {
                table.condition("''")
            }
            (AgentFileRule::AsInSessions, _) => None,
        }?;
        Some((table, condition))
    })
}

/// Deletes the rows of the agent's own that a file of the whole agent would contain. Part
/// of a transaction.
pub fn delete_agents_own(db: &dyn Database) -> Result<()> {
    for (table, condition) in of_the_agents_file() {
        Delete::from(table, &condition, &[]).run(db)?;
    }
    Ok(())
}

/// Whether there is no row of the agent's own that a file of the whole agent would contain.
pub fn has_no_own(db: &dyn Database) -> Result<bool> {
    for (table, condition) in of_the_agents_file() {
        let sql = format!("SELECT 1 FROM {} WHERE {condition} LIMIT 1", table.name);
        if !db.rows(&sql, &[])?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
