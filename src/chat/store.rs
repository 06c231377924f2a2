//! The rows of a running turn.

use super::turn::Turn;
use crate::database::{Database, find_row};
use crate::error::{Error, Result};
use crate::ids::Id;

/// Turns that one look finds.
pub const MAX_FOUND: i64 = 256;

/// A turn is one value, and one of SQLite's here holds 2 MB.
const MAX_STATE_BYTES: usize = 1_900_000;

pub struct StoredTurn {
    pub turn: Turn,
    /// Times that it was taken up again.
    pub recoveries: i64,
}

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

fn render(turn: &Turn) -> Result<String> {
    let json = serde_json::to_string(turn).map_err(|error| Error::storage(error.to_string()))?;
    if json.len() > MAX_STATE_BYTES {
        let what = "What a turn has to keep while it runs";
        return Err(Error::payload_too_large(what, MAX_STATE_BYTES, json.len()));
    }
    Ok(json)
}

/// Whether a turn of the session is under way, or was when the object died.
pub fn has_turn(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_turns WHERE session_id = ?1";
    Ok(find_row(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// A turn to take up again, counted as taken up.
pub fn take_turn(db: &dyn Database, session_id: &Id) -> Result<Option<StoredTurn>> {
    let sql = "UPDATE cf_agents_turns
                  SET recoveries = recoveries + 1
                WHERE session_id = ?1
            RETURNING state, recoveries";
    let Some(row) = find_row(db, sql, &[session_id.as_str().into()])? else {
        return Ok(None);
    };
    let turn = serde_json::from_str(row.text(0)?)
        .map_err(|_| Error::corrupt_row(session_id.as_str(), "turn"))?;
    Ok(Some(StoredTurn {
        turn,
        recoveries: row.integer(1)?,
    }))
}

/// The sessions that have a turn.
pub fn load_sessions_with_turns(db: &dyn Database) -> Result<Vec<Id>> {
    let sql = "SELECT session_id FROM cf_agents_turns ORDER BY session_id LIMIT ?1";
    let rows = db.rows(sql, &[MAX_FOUND.into()])?;
    rows.iter()
        .map(|row| Id::parse(row.text(0)?.to_owned()).map_err(Error::storage))
        .collect()
}

/// Forgets the turn. Part of a transaction.
pub fn delete_turn(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "DELETE FROM cf_agents_turns WHERE session_id = ?1";
    db.run(sql, &[session_id.as_str().into()])
}
