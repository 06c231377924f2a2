//! Turns that failed: a few of each session, and a bounded number of an agent. The record of
//! any other turn is in the event that ended it (`log/turn_ends.rs`), and costs no row.

use crate::base::columns::{FromRow, find, load, load_values};
use crate::base::database::{Database, Row};
use crate::base::error::Result;
use crate::base::ids::Id;

/// Failed turns that a session keeps.
pub const MAX_FAILED_EACH: i64 = 16;

/// Failed turns that an agent keeps: those of 64 sessions.
pub const MAX_FAILED: i64 = 1_024;

/// A turn that failed.
#[derive(Clone, Debug)]
pub struct FailedTurn {
    pub session_id: String,
    /// The event that ended the turn, or that it would have had.
    pub seq: i64,
    pub ended_at: i64,
    /// Whether the event at `seq` ended the turn.
    pub has_answer: bool,
    /// JSON: see `chat/record/mod.rs`.
    pub record: String,
}

impl FailedTurn {
    const COLUMNS: &str = "f.session_id, f.seq, f.ended_at, f.has_answer, f.record";
}

impl FromRow<'_> for FailedTurn {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            session_id: row.text(0)?.to_owned(),
            seq: row.integer(1)?,
            ended_at: row.integer(2)?,
            has_answer: row.integer(3)? == 1,
            record: row.text(4)?.to_owned(),
        })
    }
}

/// A place in the list of an agent's failures, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct FailurePlace {
    pub ended_at: i64,
    pub seq: i64,
    pub session_id: String,
}

/// Keeps a failed turn, in the place of the session's oldest if the session has no free
/// place. Part of the transaction that ends the turn.
pub fn insert(db: &dyn Database, failed: &FailedTurn) -> Result<()> {
    let sql = "SELECT slot
                 FROM cf_agents_failed_turns
                WHERE session_id = ?1
                ORDER BY ended_at, seq
                LIMIT ?2";
    let params = [failed.session_id.as_str().into(), MAX_FAILED_EACH.into()];
    let used: Vec<i64> = load_values(db, sql, &params)?;
    let free = (0..MAX_FAILED_EACH).find(|slot| !used.contains(slot));
    if free.is_some() {
        drop_surplus(db)?;
    }
    let slot = free.or(used.first().copied()).unwrap_or(0);
    db.run(
        "INSERT INTO cf_agents_failed_turns (session_id, slot, seq, ended_at, has_answer, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (session_id, slot) DO UPDATE
            SET seq = excluded.seq,
                ended_at = excluded.ended_at,
                has_answer = excluded.has_answer,
                record = excluded.record",
        &[
            failed.session_id.as_str().into(),
            slot.into(),
            failed.seq.into(),
            failed.ended_at.into(),
            failed.has_answer.into(),
            failed.record.as_str().into(),
        ],
    )
}

/// Makes room for one more row of the agent: the oldest goes.
fn drop_surplus(db: &dyn Database) -> Result<()> {
    let sql = "SELECT session_id, slot
                 FROM cf_agents_failed_turns
                ORDER BY ended_at DESC
                LIMIT 1
               OFFSET ?1";
    let surplus: Option<(String, i64)> = find(db, sql, &[(MAX_FAILED - 1).into()])?;
    match surplus {
        Some((session_id, slot)) => db.run(
            "DELETE FROM cf_agents_failed_turns
              WHERE session_id = ?1
                AND slot = ?2",
            &[session_id.into(), slot.into()],
        ),
        None => Ok(()),
    }
}

/// The failed turns of a session, newest first.
pub fn load_of_session(db: &dyn Database, session_id: &Id) -> Result<Vec<FailedTurn>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_failed_turns AS f
          WHERE f.session_id = ?1
          ORDER BY f.seq DESC, f.ended_at DESC
          LIMIT ?2",
        FailedTurn::COLUMNS
    );
    load(
        db,
        &sql,
        &[session_id.as_str().into(), MAX_FAILED_EACH.into()],
    )
}

/// Up to `limit` failed turns of the agent after a place, newest first.
pub fn load_of_agent(
    db: &dyn Database,
    before: Option<&FailurePlace>,
    limit: i64,
) -> Result<Vec<FailedTurn>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_failed_turns AS f
          WHERE ?1 IS NULL
             OR (f.ended_at, f.seq, f.session_id) < (?1, ?2, ?3)
          ORDER BY f.ended_at DESC, f.seq DESC, f.session_id DESC
          LIMIT ?4",
        FailedTurn::COLUMNS
    );
    let params = [
        before.map(|before| before.ended_at).into(),
        before.map(|before| before.seq).into(),
        before.map(|before| before.session_id.as_str()).into(),
        limit.into(),
    ];
    load(db, &sql, &params)
}
