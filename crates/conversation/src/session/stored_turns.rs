//! Records of turns that left no event: turns that failed, and turns that ended without
//! output. A session stores a limited number of each kind, so that neither its own failures
//! nor another session evict a record that may still be read. Any other turn is recorded in
//! the event that ended it (`conversation/log/turn_ends.rs`), and needs no row.
//!
//! There is no limit per agent: rows are deleted with their sessions. A limit over all
//! sessions would let one session evict the records of another.
//!
//! Instead, listing an agent's failures is bounded ([`MAX_SCANNED`]). An index by time
//! would add a row write to each failure. If there are more rows than a page may scan, each
//! page covers a group of sessions, newest sessions first.

use std::ops::Range;

use base::columns::{find_value, load, load_values};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::row;

/// The most failed turns that a session stores.
pub const MAX_FAILED_EACH: i64 = 16;

/// The most turns that a session stores that ended without output and did not fail. The
/// separate limit means that a user who stops many turns evicts no failure.
pub const MAX_SILENT_EACH: i64 = 16;

/// The most sessions whose failures one page may scan.
pub const MAX_FAILING_SESSIONS: i64 = 1_024;

/// The most rows of turns that a page of an agent's failures scans.
pub const MAX_SCANNED: i64 = MAX_FAILING_SESSIONS * MAX_FAILED_EACH;

/// The slots of a session's failures (`slot`), followed by those of its silent turns.
const FAILED_SLOTS: Range<i64> = 0..MAX_FAILED_EACH;
const SILENT_SLOTS: Range<i64> = MAX_FAILED_EACH..MAX_FAILED_EACH + MAX_SILENT_EACH;

/// Why a turn has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredTurnKind {
    Failure,
    /// No event records the turn, and it did not fail: it was stopped early, or the model
    /// produced no output.
    Silence,
}

impl StoredTurnKind {
    fn slots(self) -> Range<i64> {
        match self {
            Self::Failure => FAILED_SLOTS,
            Self::Silence => SILENT_SLOTS,
        }
    }
}

row! {
    /// A turn that has a row.
    #[derive(Clone, Debug)]
    pub struct StoredTurn {
        pub session_id: String = "k.session_id",
    /// The event that ended the turn, or that it would have had.
        pub seq: i64 = "k.seq",
        pub ended_at: i64 = "k.ended_at",
    /// Whether the event at `seq` ended the turn.
        pub has_answer: bool = "k.has_answer",
    /// JSON: see `chat/record/mod.rs`.
        pub record: String = "k.record",
    }
}

/// A position in the list of an agent's failures, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct FailurePosition {
    pub ended_at: i64,
    pub seq: i64,
    pub session_id: String,
}

/// Stores a turn. If the session has no free slot of this kind, replaces the oldest. Must
/// run in the transaction that ends the turn.
pub fn insert(db: &dyn Database, turn: &StoredTurn, kind: StoredTurnKind) -> Result<()> {
    let slots = kind.slots();
    let sql = "SELECT slot
                 FROM cf_agents_failed_turns
                WHERE session_id = ?1
                  AND slot >= ?2
                  AND slot < ?3
                ORDER BY ended_at, seq
                LIMIT ?4";
    let params = [
        turn.session_id.as_str().into(),
        slots.start.into(),
        slots.end.into(),
        (slots.end - slots.start).into(),
    ];
    let used: Vec<i64> = load_values(db, sql, &params)?;
    let free = slots.clone().find(|slot| !used.contains(slot));
    let slot = free.or(used.first().copied()).unwrap_or(slots.start);
    db.run(
        "INSERT INTO cf_agents_failed_turns (session_id, slot, seq, ended_at, has_answer, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (session_id, slot) DO UPDATE
            SET seq = excluded.seq,
                ended_at = excluded.ended_at,
                has_answer = excluded.has_answer,
                record = excluded.record",
        &[
            turn.session_id.as_str().into(),
            slot.into(),
            turn.seq.into(),
            turn.ended_at.into(),
            turn.has_answer.into(),
            turn.record.as_str().into(),
        ],
    )
}

/// The stored turns of a session, newest first.
pub fn load_of_session(db: &dyn Database, session_id: &Id) -> Result<Vec<StoredTurn>> {
    load_below(db, session_id, SILENT_SLOTS.end)
}

/// The failed turns of a session, newest first.
pub fn load_failed_of_session(db: &dyn Database, session_id: &Id) -> Result<Vec<StoredTurn>> {
    load_below(db, session_id, FAILED_SLOTS.end)
}

fn load_below(db: &dyn Database, session_id: &Id, end: i64) -> Result<Vec<StoredTurn>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_failed_turns AS k
          WHERE k.session_id = ?1
            AND k.slot < ?2
          ORDER BY k.seq DESC, k.ended_at DESC
          LIMIT ?3",
        StoredTurn::COLUMNS
    );
    let params = [session_id.as_str().into(), end.into(), end.into()];
    load(db, &sql, &params)
}

/// Whether the agent has so few rows that a page may scan them all.
pub fn are_few(db: &dyn Database) -> Result<bool> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM cf_agents_failed_turns LIMIT ?1)";
    let counted: Option<i64> = find_value(db, sql, &[(MAX_SCANNED + 1).into()])?;
    Ok(counted.unwrap_or(0) <= MAX_SCANNED)
}

/// Up to `limit` failed turns of the agent after a position, newest first. Only for an
/// agent with few rows.
pub fn load_failed_of_agent(
    db: &dyn Database,
    before: Option<&FailurePosition>,
    limit: i64,
) -> Result<Vec<StoredTurn>> {
    load_failed(db, "cf_agents_failed_turns AS slot_row", before, limit, &[])
}

/// The lowest session number of the next group below this number whose failures are scanned
/// together. `None`: there is no session.
pub fn find_lowest(db: &dyn Database, below: i64) -> Result<Option<i64>> {
    let sql = "SELECT min(number)
                 FROM (SELECT number
                         FROM cf_agents_sessions
                        WHERE number < ?1
                        ORDER BY number DESC
                        LIMIT ?2)";
    let params = [below.into(), MAX_FAILING_SESSIONS.into()];
    Ok(find_value::<Option<i64>>(db, sql, &params)?.flatten())
}

/// Like [`load_failed_of_agent`], for the sessions with numbers from `lowest` up to
/// `below`.
pub fn load_failed_of_sessions(
    db: &dyn Database,
    (lowest, below): (i64, i64),
    before: Option<&FailurePosition>,
    limit: i64,
) -> Result<Vec<StoredTurn>> {
    let from = "cf_agents_sessions AS s
                  CROSS JOIN cf_agents_failed_turns AS slot_row
                     ON s.number >= ?6
                    AND s.number < ?7
                    AND slot_row.session_id = s.id";
    load_failed(db, from, before, limit, &[lowest.into(), below.into()])
}

/// Scans the positions of these failures, and reads the records of those that it returns.
fn load_failed(
    db: &dyn Database,
    from: &str,
    before: Option<&FailurePosition>,
    limit: i64,
    more: &[SqlValue],
) -> Result<Vec<StoredTurn>> {
    let sql = format!(
        "SELECT {}
           FROM (SELECT slot_row.session_id, slot_row.slot
                   FROM {from}
                  WHERE slot_row.slot < ?5
                    AND (?1 IS NULL
                         OR (slot_row.ended_at, slot_row.seq, slot_row.session_id) < (?1, ?2, ?3))
                  ORDER BY slot_row.ended_at DESC, slot_row.seq DESC, slot_row.session_id DESC
                  LIMIT ?4) AS slot_row
          CROSS JOIN cf_agents_failed_turns AS k
          WHERE k.session_id = slot_row.session_id
            AND k.slot = slot_row.slot
          ORDER BY k.ended_at DESC, k.seq DESC, k.session_id DESC
          LIMIT ?4",
        StoredTurn::COLUMNS
    );
    let mut params: Vec<SqlValue> = vec![
        before.map(|before| before.ended_at).into(),
        before.map(|before| before.seq).into(),
        before.map(|before| before.session_id.as_str()).into(),
        limit.into(),
        FAILED_SLOTS.end.into(),
    ];
    params.extend_from_slice(more);
    load(db, &sql, &params)
}
