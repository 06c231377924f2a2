//! The stored settings: the agent's are in its configuration, a session's in its
//! journal.

use super::settings::{CompactionSettings, OwnSettings};
use crate::compaction::journal::{change_journal, load_journal, read_journal};
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use conversation::log::tip::StoredSettings;
use store::stored::{COMPACTION as KEY, find_stored, write_stored};

pub fn load_agents(db: &dyn Database) -> Result<OwnSettings> {
    read_agents(find_stored(db, KEY)?.as_deref())
}

fn read_agents(stored: Option<&str>) -> Result<OwnSettings> {
    match stored {
        Some(json) => json::decode(json).map_err(|_| Error::corrupt_row(KEY, "configuration")),
        None => Ok(OwnSettings::default()),
    }
}

/// The settings of a session, or the agent's settings if no session is given.
pub fn load_settings(
    db: &dyn Database,
    deployed: &OwnSettings,
    session_id: Option<&Id>,
) -> Result<CompactionSettings> {
    let agents = deployed.with(load_agents(db)?);
    Ok(match session_id {
        Some(id) => agents.with(load_journal(db, id)?.settings).settings(),
        None => agents.settings(),
    })
}

/// The settings of the session that an append has just written to.
pub fn settings_of(
    session_id: &Id,
    stored: &StoredSettings,
    deployed: &OwnSettings,
) -> Result<CompactionSettings> {
    let agents = deployed.with(read_agents(stored.agents.as_deref())?);
    let journal = read_journal(session_id, stored.journal.as_deref())?;
    Ok(agents.with(journal.settings).settings())
}

/// Changes the settings that `change` sets and leaves the others.
pub fn change_settings(
    db: &dyn Database,
    deployed: &OwnSettings,
    session_id: Option<&Id>,
    change: OwnSettings,
) -> Result<CompactionSettings> {
    atomically(db, || {
        match session_id {
            Some(id) => change_journal(db, id, |journal| {
                journal.settings = journal.settings.with(change);
            })?,
            None => {
                let own = load_agents(db)?.with(change);
                write_stored(db, KEY, &own)?;
            }
        }
        load_settings(db, deployed, session_id)
    })
}
