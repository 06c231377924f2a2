//! Pages of the turns that failed, newest first. Each has a row (`conversation/session/stored_turns.rs`).

use super::page::{TurnPage, bad_cursor, parse_position, position_of, render_position};
use super::show::CompletedTurn;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::MAX_INTEGER;
use conversation::session::stored_turns::{
    FailurePosition, are_few, find_lowest, load_failed_of_agent, load_failed_of_session,
    load_failed_of_sessions,
};

/// The failed turns of one session.
pub fn load_failed_of_one(
    db: &dyn Database,
    session_id: &Id,
    cursor: Option<&str>,
    limit: usize,
) -> Result<TurnPage> {
    let before = cursor.map(parse_position).transpose()?;
    let mut failed = load_failed_of_session(db, session_id)?;
    failed.retain(|one| before.is_none_or(|before| position_of(one) < before));
    let is_more = failed.len() > limit;
    failed.truncate(limit);
    let last = failed.last().filter(|_| is_more);
    Ok(TurnPage {
        cursor: last.map(|last| render_position(position_of(last))),
        turns: failed.iter().map(CompletedTurn::of_stored).collect(),
    })
}

/// Where a page of the failures of all sessions begins.
#[derive(Debug, Default, PartialEq)]
struct FailuresCursor {
    /// The page scans sessions with lower numbers. `None`: all sessions, because few turns are
    /// stored.
    below: Option<i64>,
    /// The last failure that was shown of them.
    before: Option<FailurePosition>,
}

impl FailuresCursor {
    fn render(&self) -> String {
        let below = self.below.unwrap_or(0);
        match &self.before {
            None => below.to_string(),
            Some(position) => format!(
                "{below}.{}.{}.{}",
                position.ended_at, position.seq, position.session_id
            ),
        }
    }

    fn parse(cursor: &str) -> Option<Self> {
        let mut parts = cursor.splitn(4, '.');
        let below: i64 = parts.next()?.parse().ok()?;
        let before = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(ended_at), Some(seq), Some(session_id)) => Some(FailurePosition {
                ended_at: ended_at.parse().ok()?,
                seq: seq.parse().ok()?,
                session_id: session_id.to_owned(),
            }),
            _ => return None,
        };
        Some(Self {
            below: (below > 0).then_some(below),
            before,
        })
    }
}

/// The failed turns of all sessions, newest first. If many turns are stored, a page scans some
/// sessions, those that began last first, and may be empty.
pub fn load_failed_of_all(
    db: &dyn Database,
    cursor: Option<&str>,
    limit: usize,
) -> Result<TurnPage> {
    let mut cursor = match cursor {
        Some(cursor) => FailuresCursor::parse(cursor).ok_or_else(bad_cursor)?,
        None => FailuresCursor::default(),
    };
    let most = limit as i64 + 1;
    let mut lowest = None;
    if cursor.below.is_none() && !are_few(db)? {
        // If they became many since the previous page, some are shown twice, and none is lost.
        cursor.below = Some(MAX_INTEGER);
    }
    let mut failed = match cursor.below {
        None => load_failed_of_agent(db, cursor.before.as_ref(), most)?,
        Some(below) => match find_lowest(db, below)? {
            None => return Ok(TurnPage::default()),
            Some(found) => {
                lowest = Some(found);
                load_failed_of_sessions(db, (found, below), cursor.before.as_ref(), most)?
            }
        },
    };
    let is_more = failed.len() > limit;
    failed.truncate(limit);
    let next = match (failed.last().filter(|_| is_more), lowest) {
        (Some(last), _) => Some(FailuresCursor {
            below: cursor.below,
            before: Some(FailurePosition {
                ended_at: last.ended_at,
                seq: last.seq,
                session_id: last.session_id.clone(),
            }),
        }),
        (None, Some(lowest)) if find_lowest(db, lowest)?.is_some() => Some(FailuresCursor {
            below: Some(lowest),
            before: None,
        }),
        (None, _) => None,
    };
    Ok(TurnPage {
        cursor: next.map(|next| next.render()),
        turns: failed.iter().map(CompletedTurn::of_stored).collect(),
    })
}
