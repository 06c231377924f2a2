//! The texts that the users of a session wrote in it, for rules that compare a model's words with
//! theirs.

use base::action::Action;
use base::columns::{find_value, load_values};
use base::database::Database;
use base::error::Result;
use base::ids::Id;

/// The most messages, the most characters of each, and how many of the newest events are scanned.
const MAX_MESSAGES: i64 = 100;
const MAX_CHARS: i64 = 8_000;
const MAX_EVENTS: i64 = 2_000;

/// The last event that was imported from a file or copied by a fork; 0: there is none.
pub fn find_copied_seq(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let sql = "SELECT copied_seq
                 FROM cf_agents_sessions
                WHERE id = ?1";
    let found = find_value(db, sql, &[session_id.as_str().into()])?;
    Ok(found.unwrap_or(0))
}

/// The newest texts of users that were written here, and not imported.
pub fn load_users_texts(db: &dyn Database, session_id: &Id, after_seq: i64) -> Result<Vec<String>> {
    load_values(
        db,
        &format!(
            "SELECT substr(content, 1, ?4)
               FROM cf_agents_events
              WHERE session_id = ?1
                AND seq > max(?2, (SELECT max(newest.seq) - ?5
                                     FROM cf_agents_events AS newest
                                    WHERE newest.session_id = ?1))
                AND action = '{}'
                AND content IS NOT NULL
              ORDER BY seq DESC
              LIMIT ?3",
            Action::UserMessage.name()
        ),
        &[
            session_id.as_str().into(),
            after_seq.into(),
            MAX_MESSAGES.into(),
            MAX_CHARS.into(),
            MAX_EVENTS.into(),
        ],
    )
}
