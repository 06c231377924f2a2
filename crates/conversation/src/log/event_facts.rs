//! Facts about events that other crates need, without the events' bodies.

use super::boundary::STARTS_MESSAGE;
use base::action::Action;
use base::columns::{find_value, load, load_values};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::{row, sql};

/// The id of the event with this `seq`.
pub fn find_id(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<String>> {
    let sql = "SELECT id
                 FROM cf_agents_events
                WHERE session_id = ?1
                  AND seq = ?2";
    find_value(db, sql, &[session_id.as_str().into(), seq.into()])
}

/// What an event records about the turn that it ended, as JSON. `None`: it ended no turn,
/// or doesn't exist.
pub fn find_ends_turn(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<String>> {
    let sql = "SELECT ends_turn
                 FROM cf_agents_events
                WHERE session_id = ?1
                  AND seq = ?2";
    let found: Option<Option<String>> =
        find_value(db, sql, &[session_id.as_str().into(), seq.into()])?;
    Ok(found.flatten())
}

row! {
    /// An event, and the event that it follows.
    pub struct EventParent {
        pub seq: i64 = "seq",
        /// 0: the event begins the log, or a branch of it.
        pub parent_seq: i64 = "parent_seq",
    }
}

/// Up to `limit` events from this `seq` on, in order.
pub fn load_parents(
    db: &dyn Database,
    session_id: &Id,
    from_seq: i64,
    limit: i64,
) -> Result<Vec<EventParent>> {
    let sql = sql!(
        "SELECT ",
        EventParent::COLUMNS,
        " FROM cf_agents_events
          WHERE session_id = ?1
            AND seq >= ?2
          ORDER BY seq
          LIMIT ?3 + 0"
    );
    let params = [session_id.as_str().into(), from_seq.into(), limit.into()];
    load(db, sql, &params)
}

row! {
    /// An event, and when it was written.
    pub struct EventTime {
        pub seq: i64 = "seq",
        pub written_at: i64 = "written_at",
    }
}

/// Up to `limit` events after this `seq`, in order.
pub fn load_times_after(
    db: &dyn Database,
    session_id: &Id,
    after_seq: i64,
    limit: i64,
) -> Result<Vec<EventTime>> {
    let sql = sql!(
        "SELECT ",
        EventTime::COLUMNS,
        " FROM cf_agents_events
          WHERE session_id = ?1
            AND seq > ?2
          ORDER BY seq
          LIMIT ?3"
    );
    let params = [session_id.as_str().into(), after_seq.into(), limit.into()];
    load(db, sql, &params)
}

/// An upper bound for the number of events in the first `sessions` sessions.
pub fn count_at_most(db: &dyn Database, sessions: i64) -> Result<i64> {
    let sql = "SELECT coalesce(sum((SELECT max(e.seq)
                                      FROM cf_agents_events AS e
                                     WHERE e.session_id = s.id)), 0)
                 FROM (SELECT id
                         FROM cf_agents_sessions
                        LIMIT ?1) AS s";
    let sum: Option<Option<i64>> = find_value(db, sql, &[sessions.into()])?;
    Ok(sum.flatten().unwrap_or(0))
}

/// The number of messages that the API shows: a run of events is one message.
pub fn count_messages(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let sql = format!(
        "SELECT count(*)
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND {STARTS_MESSAGE}"
    );
    Ok(find_value(db, &sql, &[session_id.as_str().into()])?.unwrap_or(0))
}

/// The id of the session's first event.
pub fn find_first_id(db: &dyn Database, session_id: &Id) -> Result<Option<String>> {
    let sql = "SELECT id FROM cf_agents_events WHERE session_id = +?1 ORDER BY seq LIMIT 1";
    find_value(db, sql, &[session_id.as_str().into()])
}

/// The newest events with this action, at most `most`, newest first.
pub fn load_newest_seqs(
    db: &dyn Database,
    session_id: &Id,
    action: Action,
    most: i64,
) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT seq
           FROM cf_agents_events
          WHERE session_id = +?1
            AND action = '{}'
          ORDER BY seq DESC
          LIMIT ?2 + 0",
        action.name()
    );
    load_values(db, &sql, &[session_id.as_str().into(), most.into()])
}

/// Whether an event before this one has this action.
pub fn has_before(db: &dyn Database, session_id: &Id, seq: i64, action: Action) -> Result<bool> {
    let sql = format!(
        "SELECT 1
           FROM cf_agents_events
          WHERE session_id = +?1
            AND seq < +?2
            AND action = '{}'
          LIMIT 1",
        action.name()
    );
    let found: Option<i64> = find_value(db, &sql, &[session_id.as_str().into(), seq.into()])?;
    Ok(found.is_some())
}
