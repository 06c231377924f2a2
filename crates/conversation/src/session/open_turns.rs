//! The stored state of turns that run or were interrupted. Only `chat` interprets it.

use base::columns::{find_value, load_values};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;

use crate::session::last_turns::IS_OPEN;

/// Writes the state of a turn, if it still is its session's turn.
pub fn write_state(db: &dyn Database, session_id: &Id, turn_id: &str, state: &str) -> Result<()> {
    let sql = format!(
        "UPDATE cf_agents_last_turns AS t
            SET state = ?3
          WHERE t.session_id = ?1
            AND t.turn_id = ?2
            AND {IS_OPEN}"
    );
    let params = [session_id.as_str().into(), turn_id.into(), state.into()];
    db.run(&sql, &params)
}

/// The state of the session's turn. `None`: the session has no turn.
pub fn find_state(db: &dyn Database, session_id: &Id) -> Result<Option<String>> {
    let sql = format!(
        "SELECT t.state
           FROM cf_agents_last_turns AS t
          WHERE t.session_id = ?1
            AND {IS_OPEN}"
    );
    find_value(db, &sql, &[session_id.as_str().into()])
}

/// Counts a recovery of the session's turn and returns the new count. `None`: the
/// session has no turn.
pub fn count_recovery(db: &dyn Database, session_id: &Id) -> Result<Option<i64>> {
    let sql = format!(
        "UPDATE cf_agents_last_turns AS t
            SET recoveries = recoveries + 1
          WHERE t.session_id = ?1
            AND {IS_OPEN}
      RETURNING recoveries"
    );
    find_value(db, &sql, &[session_id.as_str().into()])
}

/// The sessions with an interrupted turn, those with the fewest recoveries first. `running`: the
/// sessions whose turn runs.
pub fn load_interrupted_sessions(
    db: &dyn Database,
    running: &[String],
    limit: usize,
) -> Result<Vec<Id>> {
    let running = json::encode(&running)?;
    let sql = format!(
        "SELECT t.session_id
           FROM cf_agents_last_turns AS t
          WHERE t.session_id NOT IN (SELECT value FROM json_each(?1))
            AND {IS_OPEN}
          ORDER BY t.recoveries, t.session_id
          LIMIT ?2"
    );
    let params = [running.into(), (limit as i64).into()];
    let ids: Vec<String> = load_values(db, &sql, &params)?;
    ids.into_iter()
        .map(|id| Id::parse(id).map_err(Error::storage))
        .collect()
}
