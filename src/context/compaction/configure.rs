//! The settings as they are stored: the agent's in its configuration, a session's in its journal.

use super::settings::{Own, Settings};
use crate::base::database::{Database, atomically, find_row};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::context::compaction::journal::{change_journal, load_journal};

pub fn load_agents(db: &dyn Database) -> Result<Own> {
    let sql = "SELECT value FROM cf_agents_config WHERE key = ?1";
    match find_row(db, sql, &[KEY.into()])? {
        Some(row) => {
            serde_json::from_str(row.text(0)?).map_err(|_| Error::corrupt_row(KEY, "configuration"))
        }
        None => Ok(Own::default()),
    }
}

/// What holds for a session, or for the agent's sessions in general.
pub fn load_settings(db: &dyn Database, session_id: Option<&Id>) -> Result<Settings> {
    let agents = load_agents(db)?;
    Ok(match session_id {
        Some(id) => agents.with(load_journal(db, id)?.settings).settings(),
        None => agents.settings(),
    })
}

/// Changes what `change` says something about, and keeps the rest.
pub fn change_settings(
    db: &dyn Database,
    session_id: Option<&Id>,
    change: Own,
) -> Result<Settings> {
    atomically(db, || {
        match session_id {
            Some(id) => change_journal(db, id, |journal| {
                journal.settings = journal.settings.with(change);
            })?,
            None => {
                let own = load_agents(db)?.with(change);
                let value = serde_json::to_string(&own)
                    .map_err(|error| Error::storage(error.to_string()))?;
                db.run(
                    "INSERT INTO cf_agents_config (key, value) VALUES (?1, ?2)
                         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    &[KEY.into(), value.into()],
                )?;
            }
        }
        load_settings(db, session_id)
    })
}

pub const KEY: &str = "compaction";
