//! Deletes a session: its row, its log, and everything that belongs to either.

use crate::tables;
use base::database::{Database, atomically};
use base::error::Result;
use base::ids::Id;
use conversation::index;
use conversation::log::sessions::session_exists;
use conversation::session::changes;
use conversation::session::last_turns;

/// Deletes the session and everything that belongs to it. `false`: there is no such
/// session.
pub fn delete_session(db: &dyn Database, id: &Id) -> Result<bool> {
    atomically(db, || {
        if !session_exists(db, id)? {
            return Ok(false);
        }
        // Must run first: it reads from the log where the cursors of the next session with
        // this id start.
        changes::end_lifetime(db, id)?;
        last_turns::add_to_agent(db, id)?;
        index::remove_session(db, id.as_str())?;
        tables::delete_session(db, id)?;
        Ok(true)
    })
}
