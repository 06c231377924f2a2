//! When each session's next learning pass is due, for an agent that learns (the crate `learning`).
//! The times are stored in rows, so that no pass is lost if the object is evicted.

use base::columns::find_value;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::{Count, MAX_INTEGER};
use store::learn_settings::{IDLE_MS, LearnSettings, LearnTrigger};
use store::stored::{UNKNOWN_UNTIL, find_stored};

/// After an append by an operation, a learning pass waits this long for the appends that follow.
const SETTLE_MS: i64 = 3_000;

/// Only a caller of `learn` starts a pass: no alarm is ever set to this time.
pub const NEVER_MS: i64 = MAX_INTEGER;

/// The trigger of a learning pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassTrigger {
    /// A turn has ended.
    TurnEnd,
    /// Somebody appended to the log.
    Append,
}

/// When a session with new content is due for a learning pass.
pub fn due_at(settings: &LearnSettings, trigger: PassTrigger, now_ms: i64) -> i64 {
    match (settings.after, trigger) {
        (LearnTrigger::Turn, PassTrigger::TurnEnd) => now_ms,
        (LearnTrigger::Turn, PassTrigger::Append) => now_ms + SETTLE_MS,
        (LearnTrigger::Idle, _) => now_ms + IDLE_MS,
        (LearnTrigger::Manual, _) => NEVER_MS,
    }
}

/// Marks a session as due for a learning pass. If it is due by then already, no row is written.
/// Part of the transaction that writes the new content.
pub fn mark_due(db: &dyn Database, session_id: &Id, due_at: i64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET learn_due_at = ?2
          WHERE id = ?1
            AND (learn_due_at IS NULL OR learn_due_at > ?2)",
        &[session_id.as_str().into(), due_at.into()],
    )
}

/// The time until which builds wrote events without recording who caused them; 0: there are no such
/// events.
pub fn load_unknown_until(db: &dyn Database) -> Result<i64> {
    let stored = find_stored(db, UNKNOWN_UNTIL)?;
    Ok(stored.map_or(0, |stored| stored.parse().unwrap_or(MAX_INTEGER)))
}

/// The last event that learning has covered in a session. `None`: nothing was.
pub fn load_learned(db: &dyn Database, session_id: &Id) -> Result<Option<Count>> {
    let sql = "SELECT nullif(learned_seq, 0) FROM cf_agents_sessions WHERE id = ?1";
    let learned: Option<Option<i64>> = find_value(db, sql, &[session_id.as_str().into()])?;
    Ok(learned.flatten().map(Count))
}

/// Records the last event that learning has covered in a session. Part of a transaction.
pub fn write_learned(db: &dyn Database, session_id: &Id, seq: i64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions SET learned_seq = ?2 WHERE id = ?1",
        &[session_id.as_str().into(), seq.into()],
    )
}
