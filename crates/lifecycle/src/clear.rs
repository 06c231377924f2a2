//! Clears a session: its messages are deleted, the session stays.

use base::columns::find_value;
use base::database::{Database, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use conversation::log::boundary::STARTS_MESSAGE;
use conversation::log::sessions::find_stamp;
use conversation::log::tip::get_tip;
use conversation::messages::change::touch;
use search::index;
use store::changes::{self, ChangeType};
use store::last_turns;
use store::tables;

/// Deletes a session's events and the documents in its context, but not the session. The
/// feed keeps only the entry for this change.
pub fn clear_messages(db: &dyn Database, host: &dyn Host, session_id: &Id) -> Result<i64> {
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let has_unloaded = tables::delete_context(db, session_id)?;
        // Counts messages as the API shows them: a run of events is one message.
        let sql = format!(
            "SELECT count(*)
               FROM cf_agents_events AS e
              WHERE e.session_id = ?1
                AND {STARTS_MESSAGE}"
        );
        let deleted = find_value(db, &sql, &[session_id.as_str().into()])?.unwrap_or(0);
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
        last_turns::settle(db, session_id)?;
        index::remove_session(db, session_id.as_str())?;
        tables::delete_log(db, session_id)?;
        db.run(
            "UPDATE cf_agents_sessions
                SET seq_floor = max(seq_floor, ?2),
                    leaf_seq = NULL,
                    compaction = iif(json_valid(compaction),
                                     json_remove(compaction, '$.lastError'), compaction),
                    updated_at = ?3
              WHERE id = ?1",
            &[
                session_id.as_str().into(),
                tip.last_seq().into(),
                written_at.into(),
            ],
        )?;
        Ok(deleted)
    })
}
