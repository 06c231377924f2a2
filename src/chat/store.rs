//! The rows of a running turn.

use super::turn::Turn;
use crate::database::{Database, find_row};
use crate::error::{Error, Result};
use crate::ids::Id;

/// Turns that one look finds.
pub const MAX_FOUND: i64 = 256;

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
    serde_json::to_string(turn).map_err(|error| Error::storage(error.to_string()))
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

/// Forgets the turn and what it told. Part of a transaction.
pub fn delete_turn(db: &dyn Database, session_id: &Id) -> Result<()> {
    for table in ["cf_agents_turns", "cf_agents_turn_chunks"] {
        let sql = format!("DELETE FROM {table} WHERE session_id = ?1");
        db.run(&sql, &[session_id.as_str().into()])?;
    }
    Ok(())
}

/// Keeps chunks, one JSON a line.
pub fn append_chunks(
    db: &dyn Database,
    session_id: &Id,
    part: i64,
    step: usize,
    lines: &str,
) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_turn_chunks (session_id, part, step, chunks)
         VALUES (?1, ?2, ?3, ?4)",
        &[
            session_id.as_str().into(),
            part.into(),
            (step as i64).into(),
            lines.into(),
        ],
    )
}

/// The chunks of the steps before `step`, in order, and the number of the next
/// part. What was told of a step that is done again is forgotten.
pub fn rewind_chunks(
    db: &dyn Database,
    session_id: &Id,
    step: usize,
) -> Result<(Vec<String>, i64)> {
    db.run(
        "DELETE FROM cf_agents_turn_chunks WHERE session_id = ?1 AND step >= ?2",
        &[session_id.as_str().into(), (step as i64).into()],
    )?;
    let rows = db.rows(
        "SELECT part, chunks
           FROM cf_agents_turn_chunks
          WHERE session_id = ?1
          ORDER BY part",
        &[session_id.as_str().into()],
    )?;
    let next = rows
        .last()
        .map_or(Ok(0), |row| row.integer(0).map(|part| part + 1))?;
    let mut chunks = Vec::new();
    for row in &rows {
        chunks.extend(row.text(1)?.lines().map(str::to_owned));
    }
    Ok((chunks, next))
}
