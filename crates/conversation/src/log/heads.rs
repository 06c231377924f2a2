//! Rows of sessions, each joined with its last turn, for callers that read most of a row at once.

use crate::session::last_turns::JOIN_LAST_TURN;
use base::columns::{self, FromRow, find_value};
use base::database::{Database, Row};
use base::error::Result;
use base::ids::Id;
use base::sql;

/// SQL: the `seq` of the newest event of a session `s`; 0: the log is empty.
pub const NEWEST_SEQ: &str = "coalesce((SELECT max(seq)
                                      FROM cf_agents_events
                                     WHERE session_id = s.id), 0)";

/// SQL: the id of the event that somebody chose as the leaf of a session `s`, and that still is.
pub const CHOSEN_LEAF: &str = sql!(
    "(SELECT chosen.id
        FROM cf_agents_events AS chosen
       WHERE chosen.session_id = s.id
         AND chosen.seq = s.leaf_seq
         AND s.leaf_chosen_at >= ",
    NEWEST_SEQ,
    ")"
);

fn select(columns: &str, from: &str) -> String {
    format!("SELECT {columns} FROM {from} AS s {JOIN_LAST_TURN}")
}

/// Reads columns of a session `s` with its last turn.
pub fn find<T>(db: &dyn Database, columns: &str, id: &Id) -> Result<Option<T>>
where
    T: for<'r> FromRow<'r>,
{
    let sql = format!("{} WHERE s.id = ?1", select(columns, "cf_agents_sessions"));
    columns::find(db, &sql, &[id.as_str().into()])
}

/// Reads columns of the sessions with the next numbers after this one: of so many sessions, and of
/// so many bytes of metadata and settings, which only the last session may exceed.
pub fn load_after(
    db: &dyn Database,
    columns: &str,
    number: i64,
    (sessions, most_bytes): (i64, usize),
) -> Result<Vec<Row>> {
    let bytes = "coalesce(octet_length(metadata), 0) + coalesce(octet_length(compaction), 0)";
    let from = format!(
        "(SELECT *
            FROM (SELECT *, sum({bytes}) OVER (ORDER BY number) AS bytes
                    FROM (SELECT *
                            FROM cf_agents_sessions
                           WHERE number > ?1
                           ORDER BY number
                           LIMIT ?2 + 0))
           WHERE bytes - ({bytes}) <= {most_bytes})"
    );
    let sql = format!("{} ORDER BY s.number", select(columns, &from));
    db.rows(&sql, &[number.into(), sessions.into()])
}

/// Whether this session still exists, and is not a later one with its id.
pub fn exists(db: &dyn Database, id: &Id, number: i64, created_at: i64) -> Result<bool> {
    let sql = "SELECT 1
                 FROM cf_agents_sessions
                WHERE id = ?1
                  AND number = ?2
                  AND created_at = ?3";
    let params = [id.as_str().into(), number.into(), created_at.into()];
    let found: Option<i64> = find_value(db, sql, &params)?;
    Ok(found.is_some())
}
