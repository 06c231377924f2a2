//! The events that ended a session's turns, newest first.
//!
//! There is no index of these events, because it would cost an additional row per turn.
//! Instead, each names the previous one (`before` in its record), and the session's row of
//! its last turn names the newest. If the named event was deleted, or an older build named
//! none, a bounded number of events is scanned.

use serde::Deserialize;

use crate::session::last_turns::ENDED_SEQ;
use base::columns::{find, find_value};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json::{self, MAX_INTEGER};
use base::row;

/// The number of events in the first scan, and in the longest one.
const FIRST_SCAN: i64 = 16;
const LONGEST_SCAN: i64 = 512;

row! {
    /// An event `e` that ended a turn.
    #[derive(Debug)]
    pub struct TurnEnd {
        pub seq: i64 = "e.seq",
        pub event_id: String = "e.id",
        pub created_at: i64 = "e.created_at",
        /// JSON: the turn's usage, and its record.
        pub json: String = "e.ends_turn",
    }
}

/// The part of a record that names the previous turn.
#[derive(Default, Deserialize)]
struct Link {
    #[serde(default)]
    record: LinkedRecord,
}

#[derive(Default, Deserialize)]
struct LinkedRecord {
    #[serde(default)]
    before: Option<i64>,
}

/// The event at `seq`, if it ended a turn.
pub fn find_turn_end(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<TurnEnd>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq = +?2
            AND e.ends_turn IS NOT NULL",
        TurnEnd::COLUMNS
    );
    find(db, &sql, &[session_id.as_str().into(), seq.into()])
}

/// A walk from a session's newest turn to its oldest.
#[derive(Debug)]
pub struct TurnWalk {
    session_id: Id,
    /// The event that probably ended the next turn.
    named: Option<i64>,
    /// The next turn was ended by an event below this one.
    below: i64,
    is_over: bool,
}

/// The next turn of a walk.
#[derive(Debug)]
pub enum NextTurn {
    Turn(TurnEnd),
    /// There is no further turn.
    Nothing,
    /// The scan limit was reached, so the walk must continue in another request.
    Pause,
}

impl TurnWalk {
    /// A walk that starts at the newest turn.
    pub fn new(db: &dyn Database, session_id: &Id) -> Result<Self> {
        let sql = format!(
            "SELECT {ENDED_SEQ}
               FROM cf_agents_sessions AS s
               LEFT JOIN cf_agents_last_turns AS t
                 ON t.session_id = s.id
              WHERE s.id = +?1"
        );
        let named: Option<Option<i64>> = find_value(db, &sql, &[session_id.as_str().into()])?;
        Ok(Self {
            session_id: session_id.clone(),
            named: named.flatten(),
            below: MAX_INTEGER,
            is_over: false,
        })
    }

    /// A walk that continues below the last event of a page.
    pub fn below(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Self> {
        let end = find_turn_end(db, session_id, seq)?;
        Ok(Self {
            session_id: session_id.clone(),
            named: end.and_then(|end| linked(&end)),
            below: seq,
            is_over: false,
        })
    }

    /// The position at which a later request may continue.
    pub fn position(&self) -> i64 {
        self.below
    }

    /// Finds the next turn. `budget` is how many events may still be scanned.
    pub fn next(&mut self, db: &dyn Database, budget: &mut i64) -> Result<NextTurn> {
        if self.is_over {
            return Ok(NextTurn::Nothing);
        }
        if let Some(named) = self.named.take().filter(|named| *named < self.below) {
            *budget -= 1;
            if let Some(end) = find_turn_end(db, &self.session_id, named)? {
                return Ok(self.advance_past(end));
            }
        }
        let mut scan_len = FIRST_SCAN;
        while *budget > 0 {
            let most = scan_len.min(*budget);
            let (scanned, lowest, found) = self.scan_len(db, most)?;
            *budget -= scanned;
            if let Some(seq) = found
                && let Some(end) = find_turn_end(db, &self.session_id, seq)?
            {
                return Ok(self.advance_past(end));
            }
            if scanned < most {
                self.is_over = true;
                return Ok(NextTurn::Nothing);
            }
            self.below = lowest;
            scan_len = (scan_len * 2).min(LONGEST_SCAN);
        }
        Ok(NextTurn::Pause)
    }

    fn advance_past(&mut self, end: TurnEnd) -> NextTurn {
        self.below = end.seq;
        self.named = linked(&end);
        NextTurn::Turn(end)
    }

    /// Scans up to `most` events. Returns how many there were, the lowest of them, and the
    /// newest that ended a turn.
    fn scan_len(&self, db: &dyn Database, most: i64) -> Result<(i64, i64, Option<i64>)> {
        let sql = "SELECT count(*), coalesce(min(seq), 0), max(iif(ends, seq, NULL))
                     FROM (SELECT e.seq, e.ends_turn IS NOT NULL AS ends
                             FROM cf_agents_events AS e
                            WHERE e.session_id = +?1
                              AND e.seq < +?2
                            ORDER BY e.seq DESC
                            LIMIT ?3)";
        let params: [SqlValue; 3] = [
            self.session_id.as_str().into(),
            self.below.into(),
            most.into(),
        ];
        let scanned: Option<(i64, i64, Option<i64>)> = find(db, sql, &params)?;
        Ok(scanned.unwrap_or_default())
    }
}

/// The event that ended the previous turn.
fn linked(end: &TurnEnd) -> Option<i64> {
    json::decode::<Link>(&end.json).ok()?.record.before
}
