//! The usage of a session's individual turns, from the events that ended them.
//!
//! There is no index of these events, because it would cost an additional row per turn.
//! Instead, a page scans a bounded number of events, newest first.

use crate::session::spending::TurnSpending;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json::{self, MAX_INTEGER};
use base::row;

/// The most events that one page scans.
const MAX_SCANNED_EVENTS: usize = 1_000;

row! {
    /// The position of an event `e` among those of all sessions.
    #[derive(Clone, Debug, PartialEq)]
    pub struct EventPosition {
        pub session_id: String = "e.session_id",
        pub seq: i64 = "e.seq",
    }
}

/// A completed turn.
pub struct EndedTurn {
    pub position: EventPosition,
    pub event_id: String,
    pub at: i64,
    pub spent: TurnSpending,
}

pub struct EndedTurns {
    pub turns: Vec<EndedTurn>,
    /// The start of the next page; `None`: this is the last one.
    pub next: Option<EventPosition>,
}

struct EventEnd {
    position: EventPosition,
    id: String,
    at: i64,
    spent: Option<TurnSpending>,
}

row! {
    for EventEnd {
        position: EventPosition = EventPosition::COLUMNS,
        id: String = "e.id",
        at: i64 = "e.created_at",
        spent: Option<&str> = "e.ends_turn",
    }
    Ok(Self {
        position,
        id,
        at,
        spent: spent.map(|json| json::decode(json).unwrap_or_default()),
    })
}

/// Up to `limit` turns before a position, of one session or of all, that ended at `since`
/// or later.
pub fn load_ended_turns(
    db: &dyn Database,
    session_id: Option<&Id>,
    before: Option<&EventPosition>,
    since: i64,
    limit: usize,
) -> Result<EndedTurns> {
    let mut params: Vec<SqlValue> = vec![(MAX_SCANNED_EVENTS as i64).into()];
    let condition = match (session_id, before) {
        (Some(id), _) => {
            params.push(id.as_str().into());
            params.push(before.map_or(MAX_INTEGER, |before| before.seq).into());
            "WHERE e.session_id = ?2 AND e.seq < ?3"
        }
        (None, Some(before)) => {
            params.push(before.session_id.as_str().into());
            params.push(before.seq.into());
            "WHERE (e.session_id, e.seq) < (?2, ?3)"
        }
        (None, None) => "",
    };
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
        {condition}
          ORDER BY e.session_id DESC, e.seq DESC
          LIMIT ?1",
        EventEnd::COLUMNS
    );
    let ends: Vec<EventEnd> = load(db, &sql, &params)?;
    let is_whole = ends.len() < MAX_SCANNED_EVENTS;
    let mut page = EndedTurns {
        turns: Vec::new(),
        next: None,
    };
    let mut last = None;
    for end in ends {
        if page.turns.len() == limit {
            page.next = last;
            return Ok(page);
        }
        last = Some(end.position.clone());
        let Some(spent) = end.spent else {
            continue;
        };
        if end.at >= since {
            page.turns.push(EndedTurn {
                position: end.position,
                event_id: end.id,
                at: end.at,
                spent,
            });
        } else if session_id.is_some() {
            // The turns of one session end in order.
            return Ok(page);
        }
    }
    page.next = last.filter(|_| !is_whole);
    Ok(page)
}
