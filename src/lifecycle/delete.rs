//! Deleting a session: its row, its log, and all that hangs on either.

use crate::base::database::{Database, atomically};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::log::sessions::session_exists;
use crate::memory;
use crate::search::index;
use crate::store::changes;
use crate::store::usage;

/// Deletes the session and all that hangs on it; `false` if there is none.
pub fn delete_session(db: &dyn Database, id: &Id) -> Result<bool> {
    atomically(db, || {
        if !session_exists(db, id)? {
            return Ok(false);
        }
        // First: where the next life's cursors begin is read off the log.
        changes::forget_all(db, id)?;
        delete_rows(db, id)?;
        usage::forget_calls(db, id)?;
        db.run(
            "DELETE FROM cf_agents_turns WHERE session_id = ?1",
            &[id.as_str().into()],
        )?;
        memory::forget_session(db, id)?;
        db.run(
            "DELETE FROM cf_agents_sessions WHERE id = ?1",
            &[id.as_str().into()],
        )?;
        Ok(true)
    })
}

/// Deletes everything that a session's log is stored in. Part of a transaction.
pub fn delete_rows(db: &dyn Database, id: &Id) -> Result<()> {
    index::remove_session(db, id.as_str())?;
    for table in [
        "cf_agents_events",
        "cf_agents_slices",
        "cf_agents_compactions",
        "cf_agents_media",
        "cf_agents_media_uses",
        "cf_agents_early_answers",
    ] {
        let sql = format!("DELETE FROM {table} WHERE session_id = ?1");
        db.run(&sql, &[id.as_str().into()])?;
    }
    Ok(())
}

/// Takes all documents out of a session's context; `false`: there were none. Part
/// of a transaction.
pub fn unload_documents(db: &dyn Database, id: &Id) -> Result<bool> {
    memory::skills::loaded::forget_all(db, id)
}
