//! Copies a session's memory for a fork of the session, so that the conversation
//! continues with what it knew. Part of the fork's transaction.

use super::counts::count_copies;
use super::entries::find_by_number;
use super::entry_search::index_entry;
use crate::base::columns::load_values;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::store::tables;

pub fn copy_session(db: &dyn Database, from: &Id, to: &Id) -> Result<()> {
    tables::copy_session(db, from, to)?;
    count_copies(db, to)?;
    index_copies(db, to)
}

/// Indexes one entry at a time, because all texts together may be long.
fn index_copies(db: &dyn Database, session_id: &Id) -> Result<()> {
    let numbers: Vec<i64> = load_values(
        db,
        "SELECT number
           FROM cf_agents_entries
          WHERE scope = ?1
          ORDER BY block, key",
        &[session_id.as_str().into()],
    )?;
    for number in numbers {
        if let Some(entry) = find_by_number(db, number)? {
            index_entry(db, number, &entry)?;
        }
    }
    Ok(())
}
