//! Clears a session: deletes its messages, but not the session.

use crate::tables;
use base::database::{Database, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use conversation::index;
use conversation::log::event_facts::count_messages;
use conversation::log::sessions::{begin_again, find_stamp};
use conversation::log::tip::get_tip;
use conversation::messages::change::touch;
use conversation::session::changes::{self, ChangeType};
use conversation::session::last_turns;

/// Deletes a session's events and the documents in its context, but not the session. The
/// change feed keeps only the entry for this change.
pub fn clear_messages(db: &dyn Database, host: &dyn Host, session_id: &Id) -> Result<i64> {
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let has_unloaded = tables::delete_context(db, session_id)?;
        let deleted = count_messages(db, session_id)?;
        if deleted == 0 {
            if has_unloaded {
                touch(db, host, session_id)?;
            }
            return Ok(0);
        }
        let written_at = find_stamp(db, host, session_id)?;
        changes::record(
            db,
            host,
            session_id,
            tip.last_seq(),
            ChangeType::Clear,
            &[None],
        )?;
        changes::forget_before_newest(db, session_id)?;
        last_turns::fold_ended(db, session_id)?;
        index::remove_session(db, session_id.as_str())?;
        tables::delete_log(db, session_id)?;
        begin_again(db, session_id, tip.last_seq(), written_at)?;
        Ok(deleted)
    })
}
