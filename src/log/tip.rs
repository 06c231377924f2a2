//! Where a session's log stands: what the next append needs to know, in one
//! statement that costs the same at any length.

use crate::base::columns::{FromRow, find};
use crate::base::database::{Database, Row};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;

pub struct LogTip {
    /// The newest event's `seq`; 0 in an empty log.
    pub newest_seq: i64,
    /// No new event gets this `seq` or a lower one.
    pub seq_floor: i64,
    /// Events up to this one came with a file or with a fork: what they say of open
    /// calls is data, and no turn of this session left it.
    pub copied_seq: i64,
    /// The event that the default branch ends with.
    pub leaf: Option<Leaf>,
}

impl LogTip {
    /// The highest `seq` that an event of this session ever had.
    pub fn last_seq(&self) -> i64 {
        self.newest_seq.max(self.seq_floor)
    }
}

#[derive(Clone)]
pub struct Leaf {
    pub seq: i64,
    pub id: String,
}

/// The leaf is the newest event, unless another branch was chosen since.
pub fn get_tip(db: &dyn Database, session_id: &Id) -> Result<LogTip> {
    let sql = format!(
        "SELECT {}
          FROM cf_agents_sessions AS s
          LEFT JOIN cf_agents_events AS newest
            ON newest.session_id = s.id
           AND newest.seq = (SELECT max(seq) FROM cf_agents_events WHERE session_id = s.id)
          LEFT JOIN cf_agents_events AS chosen
            ON chosen.session_id = s.id
           AND chosen.seq = s.leaf_seq
         WHERE s.id = ?1",
        LogTip::COLUMNS
    );
    find(db, &sql, &[session_id.as_str().into()])?
        .ok_or_else(|| Error::session_not_found(session_id.as_str()))
}

impl LogTip {
    /// Of a session `s`, with its events `newest` and `chosen`.
    const COLUMNS: &str =
        "s.seq_floor, s.leaf_chosen_at, newest.seq, newest.id, chosen.seq, chosen.id, s.copied_seq";
}

impl FromRow<'_> for LogTip {
    fn from_row(row: &Row) -> Result<Self> {
        let newest_seq = row.find_integer(2).unwrap_or(0);
        let leaf_at = |column: usize| {
            Some(Leaf {
                seq: row.find_integer(column)?,
                id: row.find_text(column + 1)?.to_owned(),
            })
        };
        let chosen = row
            .find_integer(1)
            .filter(|chosen_at| newest_seq <= *chosen_at)
            .and_then(|_| leaf_at(4));
        Ok(LogTip {
            newest_seq,
            seq_floor: row.integer(0)?,
            copied_seq: row.integer(6)?,
            leaf: chosen.or_else(|| leaf_at(2)),
        })
    }
}
