//! Deletes a session: its row, its log, and all that belongs to either.

use crate::base::database::{Database, atomically};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::log::sessions::session_exists;
use crate::search::index;
use crate::store::changes;
use crate::store::last_turns;
use crate::store::tables;

/// Deletes the session and all that belongs to it; `false`: there is no such session.
pub fn delete_session(db: &dyn Database, id: &Id) -> Result<bool> {
    atomically(db, || {
        if !session_exists(db, id)? {
            return Ok(false);
        }
        // Must run first: it reads from the log where the cursors of the next session
        // with this id begin.
        changes::end_life(db, id)?;
        last_turns::outlive(db, id)?;
        index::remove_session(db, id.as_str())?;
        tables::delete_session(db, id)?;
        Ok(true)
    })
}
