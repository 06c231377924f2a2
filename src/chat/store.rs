//! The rows of a running turn.

use super::turn::Turn;
use crate::base::columns::{find_value, load_values};
use crate::base::database::{Database, find_row};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;

/// How many turns that were cut off are recovered at the same time. Each is read whole
/// and calls its model at once; the others follow as these end.
pub const MAX_TAKEN_UP: usize = 4;

/// A turn is stored as one value, and SQLite limits a value to 2 MB here.
const MAX_STATE_BYTES: usize = 1_900_000;

pub fn insert_turn(db: &dyn Database, turn: &Turn) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_turns (session_id, state) VALUES (?1, ?2)",
        &[turn.session_id.as_str().into(), render(turn)?.into()],
    )
}

pub fn save_turn(db: &dyn Database, turn: &Turn) -> Result<()> {
    db.run(
        "UPDATE cf_agents_turns SET state = ?2 WHERE session_id = ?1",
        &[turn.session_id.as_str().into(), render(turn)?.into()],
    )
}

/// Bytes that a turn takes when it is stored.
pub fn state_bytes(turn: &Turn) -> usize {
    serde_json::to_string(turn).map_or(0, |json| json.len())
}

fn render(turn: &Turn) -> Result<String> {
    let json = serde_json::to_string(turn).map_err(|error| Error::storage(error.to_string()))?;
    if json.len() > MAX_STATE_BYTES {
        let what = "What a turn has to keep while it runs";
        return Err(Error::payload_too_large(what, MAX_STATE_BYTES, json.len()));
    }
    Ok(json)
}

/// Whether the session has a turn: a running one, or one that was cut off.
pub fn has_turn(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_turns WHERE session_id = ?1";
    Ok(find_row(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// Counts a recovery of the session's turn and returns the new count. `None`: the
/// session has no turn.
pub fn count_recovery(db: &dyn Database, session_id: &Id) -> Result<Option<i64>> {
    let sql = "UPDATE cf_agents_turns
                  SET recoveries = recoveries + 1
                WHERE session_id = ?1
            RETURNING recoveries";
    find_value(db, sql, &[session_id.as_str().into()])
}

pub fn find_turn(db: &dyn Database, session_id: &Id) -> Result<Option<Turn>> {
    let sql = "SELECT state FROM cf_agents_turns WHERE session_id = ?1";
    find_value::<String>(db, sql, &[session_id.as_str().into()])?
        .map(|state| {
            serde_json::from_str(&state)
                .map_err(|_| Error::corrupt_row(session_id.as_str(), "turn"))
        })
        .transpose()
}

/// The sessions whose turn was cut off, those with the fewest recoveries first.
/// `running`: the sessions whose turn runs.
pub fn load_sessions_cut_off(
    db: &dyn Database,
    running: &[String],
    limit: usize,
) -> Result<Vec<Id>> {
    let running = serde_json::json!(running).to_string();
    let ids: Vec<String> = load_values(
        db,
        "SELECT session_id
           FROM cf_agents_turns
          WHERE session_id NOT IN (SELECT value FROM json_each(?1))
          ORDER BY recoveries, session_id
          LIMIT ?2",
        &[running.into(), (limit as i64).into()],
    )?;
    ids.into_iter()
        .map(|id| Id::parse(id).map_err(Error::storage))
        .collect()
}

/// Deletes the turn. Part of a transaction.
pub fn delete_turn(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "DELETE FROM cf_agents_turns WHERE session_id = ?1";
    db.run(sql, &[session_id.as_str().into()])
}
