//! The order of sessions by their last activity.
//!
//! An append writes nothing but its event, so it does not update its session's row. The rows are
//! right all the same, except for the sessions of the *window*: some [`WINDOW`] sessions whose rows
//! have the latest times. For them, the newest event and the newest change are read.
//!
//! The rule: for a session outside the window, `settled_at` is the time of its last write. A write
//! to such a session brings it into the window ([`record`]), which costs three rows. From time to
//! time, surplus sessions leave the window, and their rows are updated ([`trim_window`]). So a
//! session that is written to continuously pays nothing.

use serde::{Deserialize, Serialize};

use base::columns::{find, find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::{row, sql};
use store::stored::{ACTIVITY, OF_KEY, find_stored, write_stored};

/// SQL: when session `s` was last written to. Costs one seek into the log and one
/// into the change feed.
pub const ACTIVE_AT: &str = "
    max(s.updated_at,
        coalesce((SELECT c.changed_at
                    FROM cf_agents_changes AS c
                   WHERE c.session_id = s.id
                   ORDER BY c.cursor DESC
                   LIMIT 1), 0),
        coalesce((SELECT e.written_at
                    FROM cf_agents_events AS e
                   WHERE e.session_id = s.id
                   ORDER BY e.seq DESC
                   LIMIT 1), 0))";

/// The number of sessions in the window after [`trim_window`]. A page of sessions reads each of
/// them, up to four rows.
pub const WINDOW: i64 = 64;

/// The window is settled with one of so many sessions that enter it.
const TRIMMED_EVERY: i64 = 16;

/// The most sessions that leave the window at once: more than enter it meanwhile.
const MAX_TRIMMED: i64 = 256;

/// SQL: whether session `s` is outside the window.
pub const IS_OUTSIDE_WINDOW: &str = sql!(
    "(s.settled_at, s.number) <= (SELECT value ->> 0, value ->> 1 ",
    OF_KEY,
    "'",
    ACTIVITY,
    "')"
);

/// SQL: the sessions `s` of the window, in two ranges of the index: those after the time of the
/// last position outside it (`?1`, `?2`), and those of that very time.
const ABOVE: &str = "FROM cf_agents_sessions AS s WHERE s.settled_at > ?1 AND ?2 IS NOT NULL";
const SAME_TIME: &str = "FROM cf_agents_sessions AS s WHERE s.settled_at = ?1 AND s.number > ?2";

row! {
    /// A session's position in the order of activity.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub struct SessionPosition(active_at: &str) {
        pub active_at: i64 = active_at,
        pub number: i64 = "number",
    }
}

impl SessionPosition {
    /// Before the position of every session.
    const FIRST: Self = Self {
        active_at: -1,
        number: 0,
    };
}

/// The last position outside the window. If the value can't be read, the window contains every
/// session.
fn find_window_end(db: &dyn Database) -> Result<SessionPosition> {
    let stored = find_stored(db, ACTIVITY)?;
    let edge: Option<(i64, i64)> = stored.and_then(|stored| json::decode(&stored).ok());
    Ok(edge.map_or(SessionPosition::FIRST, |(active_at, number)| {
        SessionPosition { active_at, number }
    }))
}

/// Records that a session was written to. Part of the write's transaction, after the write. It
/// writes nothing, unless the session is outside the window.
pub fn record(db: &dyn Database, id: &Id) -> Result<()> {
    let sql = format!(
        "UPDATE cf_agents_sessions AS s
            SET settled_at = {ACTIVE_AT}
          WHERE s.id = ?1
            AND {IS_OUTSIDE_WINDOW}
            AND s.settled_at < {ACTIVE_AT}
      RETURNING {}",
        SessionPosition::columns("settled_at")
    );
    let position: Option<SessionPosition> = find(db, &sql, &[id.as_str().into()])?;
    // About one of so many, whichever sessions they are.
    if position.is_some_and(|position| (position.active_at + position.number) % TRIMMED_EVERY == 0)
    {
        trim_window(db)
    } else {
        Ok(())
    }
}

/// Records a new session with its events. Part of the transaction that creates it.
pub fn record_session(db: &dyn Database, id: &Id, number: i64) -> Result<()> {
    record(db, id)?;
    match number % TRIMMED_EVERY {
        0 => trim_window(db),
        _ => Ok(()),
    }
}

/// Removes surplus sessions from the window, those with the earliest times first, and updates their
/// rows. Part of a transaction.
pub fn trim_window(db: &dyn Database) -> Result<()> {
    let edge = find_window_end(db)?;
    let params: [SqlValue; 2] = [edge.active_at.into(), edge.number.into()];
    let sql = format!("SELECT count(*) FROM (SELECT 1 {ABOVE} UNION ALL SELECT 1 {SAME_TIME})");
    let count: i64 = find_value(db, &sql, &params)?.unwrap_or(0);
    let too_many = (count - WINDOW).min(MAX_TRIMMED);
    if too_many <= 0 {
        return Ok(());
    }
    let mut leaving: Vec<(i64, i64, i64)> = Vec::new();
    for part in [SAME_TIME, ABOVE] {
        let sql = format!(
            "SELECT s.settled_at, s.number, {ACTIVE_AT}
               {part}
              ORDER BY s.settled_at, s.number
              LIMIT ?3 + 0"
        );
        let [active_at, number] = params.clone();
        let rest = too_many - leaving.len() as i64;
        leaving.extend(load::<(i64, i64, i64)>(
            db,
            &sql,
            &[active_at, number, rest.into()],
        )?);
    }
    let later = leaving
        .iter()
        .filter(|(settled_at, _, active_at)| active_at > settled_at)
        .map(|(_, number, active_at)| [*number, *active_at]);
    let later: Vec<[i64; 2]> = later.collect();
    if !later.is_empty() {
        db.run(
            "UPDATE cf_agents_sessions AS s
                SET settled_at = wanted.value ->> 1
               FROM json_each(?1) AS wanted
              WHERE s.number = wanted.value ->> 0",
            &[json::encode(&later)?.into()],
        )?;
    }
    match leaving.last() {
        Some((settled_at, number, _)) => write_stored(db, ACTIVITY, &[*settled_at, *number]),
        None => Ok(()),
    }
}

/// Up to `limit` sessions, last written first. `before`: only those that come after this position.
pub fn load_positions(
    db: &dyn Database,
    limit: i64,
    before: Option<SessionPosition>,
) -> Result<Vec<SessionPosition>> {
    let edge = find_window_end(db)?;
    let most = usize::try_from(limit).unwrap_or(0);
    let mut positions: Vec<SessionPosition> = Vec::new();
    if before.is_none_or(|before| before > edge) {
        let columns = SessionPosition::columns(ACTIVE_AT);
        let sql = format!(
            "SELECT {columns} {ABOVE}
              UNION ALL
             SELECT {columns} {SAME_TIME}"
        );
        positions = load(db, &sql, &[edge.active_at.into(), edge.number.into()])?;
        positions.retain(|position| before.is_none_or(|before| *position < before));
        positions.sort_unstable_by(|one, other| other.cmp(one));
        positions.truncate(most);
    }
    // All of the window's sessions come before the others.
    let below = match before {
        Some(before) if before <= edge => before,
        Some(_) | None => SessionPosition {
            number: edge.number + 1,
            ..edge
        },
    };
    for part in [
        "settled_at = ?1 AND number < ?2",
        "settled_at < ?1 AND ?2 IS NOT NULL",
    ] {
        let rest = limit - positions.len() as i64;
        if rest <= 0 || edge == SessionPosition::FIRST {
            break;
        }
        let sql = format!(
            "SELECT {}
               FROM cf_agents_sessions
              WHERE {part}
              ORDER BY settled_at DESC, number DESC
              LIMIT ?3 + 0",
            SessionPosition::columns("settled_at")
        );
        let params = [below.active_at.into(), below.number.into(), rest.into()];
        positions.extend(load::<SessionPosition>(db, &sql, &params)?);
    }
    Ok(positions)
}
