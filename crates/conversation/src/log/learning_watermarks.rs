//! The learning state in the sessions' rows: the last event that a session was learned from,
//! and the due time of its next learning pass. The rows are durable, so no pass is lost when
//! the object is evicted.

use crate::session::learn_due::NEVER_MS;
use base::columns::{find, find_value, load};
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::{row, sql};
use store::learn_failure::{LONGEST_RETRY_MS, LearnFailure};
use store::learn_settings::IDLE_MS;

/// How many of the passes that are due furthest in the future are checked against the
/// clock.
const CHECKED_AHEAD: i64 = 8;

/// A session with a scheduled learning pass.
#[derive(Clone, Debug, PartialEq)]
pub struct DueSession {
    pub id: Id,
    pub due_at: i64,
}

row! {
    for DueSession(due_at: &str) {
        id: String = "id",
        due_at: i64 = due_at,
    }
    Ok(Self {
        id: Id::parse(id).map_err(Error::storage)?,
        due_at,
    })
}

/// The session whose pass is due first, excluding `without`.
pub fn find_next(db: &dyn Database, without: &[Id]) -> Result<Option<DueSession>> {
    let without: Vec<&str> = without.iter().map(Id::as_str).collect();
    let sql = format!(
        "SELECT {}
           FROM cf_agents_sessions
          WHERE learn_due_at IS NOT NULL
            AND id NOT IN (SELECT value FROM json_each(?1))
          ORDER BY learn_due_at
          LIMIT 1",
        DueSession::columns("learn_due_at")
    );
    find(db, &sql, &[json::encode(&without)?.into()])
}

/// Like [`find_next`], for work that the alarm does. Also `None` if the next pass waits for
/// an explicit call. A pass scheduled further ahead than any pass can be is due now: its
/// time was written before the clock was set back.
pub fn find_next_timed(db: &dyn Database, now_ms: i64) -> Result<Option<DueSession>> {
    let Some(next) = find_next(db, &[])?.filter(|due| due.due_at < NEVER_MS) else {
        return Ok(None);
    };
    if next.due_at <= now_ms {
        return Ok(Some(next));
    }
    let sql = format!(
        "SELECT {}
           FROM (SELECT id, learn_due_at, learn_failure
                   FROM cf_agents_sessions
                  WHERE learn_due_at IS NOT NULL
                    AND learn_due_at > ?1 + {IDLE_MS}
                    AND learn_due_at < {NEVER_MS}
                  ORDER BY learn_due_at DESC
                  LIMIT {CHECKED_AHEAD})
          WHERE learn_failure IS NULL
             OR learn_due_at > ?1 + {LONGEST_RETRY_MS}
          LIMIT 1",
        DueSession::columns("?1")
    );
    let ahead: Option<DueSession> = find(db, &sql, &[now_ms.into()])?;
    Ok(Some(ahead.unwrap_or(next)))
}

/// A session's learning progress.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningWatermark {
    /// The last event that was learned from.
    pub learned_seq: i64,
    pub due_at: Option<i64>,
    /// The last event that was imported or came from a fork.
    pub copied_seq: i64,
    /// The newest event and when it was written; 0 if the log is empty.
    pub newest_seq: i64,
    pub newest_at: i64,
    pub failure: Option<LearnFailure>,
}

row! {
    for LearningWatermark {
        learned_seq: i64 = "s.learned_seq",
        due_at: Option<i64> = "s.learn_due_at",
        copied_seq: i64 = "s.copied_seq",
        newest_seq: Option<i64> = "newest.seq",
        newest_at: Option<i64> = "newest.written_at",
        failure: Option<&str> = "s.learn_failure",
    }
    Ok(Self {
        learned_seq,
        due_at,
        copied_seq,
        newest_seq: newest_seq.unwrap_or(0),
        newest_at: newest_at.unwrap_or(0),
        // An unreadable failure record must not prevent learning.
        failure: failure.and_then(|failure| json::decode(failure).ok()),
    })
}

/// `None`: the session doesn't exist.
pub fn find_watermark(db: &dyn Database, session_id: &Id) -> Result<Option<LearningWatermark>> {
    find(
        db,
        sql!(
            "SELECT ",
            LearningWatermark::COLUMNS,
            " FROM cf_agents_sessions AS s
              LEFT JOIN cf_agents_events AS newest
                ON newest.session_id = s.id
               AND newest.seq = (SELECT max(seq) FROM cf_agents_events WHERE session_id = s.id)
             WHERE s.id = ?1"
        ),
        &[session_id.as_str().into()],
    )
}

/// Advances the learning position and sets when the next pass is due. Must run in a
/// transaction.
pub fn move_watermark(
    db: &dyn Database,
    session_id: &Id,
    learned_seq: i64,
    due_at: Option<i64>,
) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET learned_seq = max(learned_seq, ?2),
                learn_due_at = ?3,
                learn_failure = NULL
          WHERE id = ?1",
        &[
            session_id.as_str().into(),
            learned_seq.into(),
            due_at.into(),
        ],
    )
}

/// Postpones a pass.
pub fn postpone(db: &dyn Database, session_id: &Id, due_at: i64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions SET learn_due_at = ?2 WHERE id = ?1",
        &[session_id.as_str().into(), due_at.into()],
    )
}

/// Records that a pass failed, and when it is retried. Must run in a transaction.
pub fn note_failure(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    error: &Error,
    is_invalid_answer: bool,
) -> Result<()> {
    let Some(mark) = find_watermark(db, session_id)? else {
        return Ok(());
    };
    let failure = LearnFailure::new(
        mark.failure.as_ref(),
        error,
        is_invalid_answer,
        host.now_ms(),
    );
    // A pass that waits for an explicit call keeps waiting for it.
    let due_at = match mark.due_at {
        Some(NEVER_MS) => NEVER_MS,
        _ => failure.retry_at(error),
    };
    db.run(
        "UPDATE cf_agents_sessions
            SET learn_due_at = ?2,
                learn_failure = ?3
          WHERE id = ?1",
        &[
            session_id.as_str().into(),
            due_at.into(),
            json::encode(&failure)?.into(),
        ],
    )
}

/// How many sessions have a scheduled pass, counted up to a limit.
pub fn count_waiting(db: &dyn Database, most: i64) -> Result<i64> {
    let sql = "SELECT count(*)
                 FROM (SELECT 1
                         FROM cf_agents_sessions
                        WHERE learn_due_at IS NOT NULL
                        LIMIT ?1)";
    Ok(find_value(db, sql, &[most.into()])?.unwrap_or(0))
}

/// The sessions whose last pass failed, most recent failure first: their ids, and the
/// failures as JSON. Examines at most `most_waiting` sessions, and returns at most `most`.
pub fn load_failures(
    db: &dyn Database,
    most_waiting: i64,
    most: i64,
) -> Result<Vec<(String, String)>> {
    load(
        db,
        "SELECT id, learn_failure
           FROM (SELECT id, learn_failure
                   FROM cf_agents_sessions
                  WHERE learn_due_at IS NOT NULL
                  LIMIT ?1)
          WHERE json_valid(learn_failure)
          ORDER BY learn_failure -> '$.at' DESC, id
          LIMIT ?2",
        &[most_waiting.into(), most.into()],
    )
}
