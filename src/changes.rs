//! The change feed: what happened to a session, in order, for a client that
//! keeps a copy. Appends are read off the log; the rest has rows of its own.

use crate::database::{Database, Value, find_row};
use crate::error::Result;
use crate::host::Host;
use crate::ids::Id;
use crate::numbers::CURSORS_A_SEQ;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeType {
    Update,
    Delete,
    Clear,
    Compaction,
}

impl ChangeType {
    fn name(self) -> &'static str {
        match self {
            ChangeType::Update => "update",
            ChangeType::Delete => "delete",
            ChangeType::Clear => "clear",
            ChangeType::Compaction => "compaction",
        }
    }
}

/// Records changes of one type, in the order of `ids` (`None`: the session as a
/// whole), in the transaction that makes them. `last_seq` is the highest that
/// an event of the session ever had.
pub fn record(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    change: ChangeType,
    ids: &[Option<&str>],
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let start = last_seq * CURSORS_A_SEQ;
    db.run(
        "INSERT INTO cf_agents_changes (session_id, cursor, type, id, changed_at)
         SELECT ?1,
                max(?2, coalesce((SELECT max(cursor)
                                    FROM cf_agents_changes
                                   WHERE session_id = ?1), 0)) + 1 + key,
                ?3, value, ?5
           FROM json_each(?4)",
        &[
            session_id.as_str().into(),
            start.into(),
            change.name().into(),
            Value::Text(serde_json::json!(ids).to_string()),
            host.now_ms().into(),
        ],
    )
}

/// The newest change that is no append; 0: there is none. Whoever read the log
/// before and sees the same now knows that what it read still stands.
pub fn load_newest(db: &dyn Database, session_id: &Id) -> Result<i64> {
    let sql = "SELECT max(cursor) FROM cf_agents_changes WHERE session_id = ?1";
    let row = find_row(db, sql, &[session_id.as_str().into()])?;
    Ok(row.and_then(|row| row.find_integer(0)).unwrap_or(0))
}

/// What a change may be, by name.
pub const TYPES: &[&str] = &["update", "delete", "clear", "compaction"];

/// Writes entries that were exported: cursor, type, id and time of each.
pub fn restore(db: &dyn Database, session_id: &Id, rows: Vec<serde_json::Value>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    db.run(
        "INSERT INTO cf_agents_changes (session_id, cursor, type, id, changed_at)
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3
           FROM json_each(?2)",
        &[
            session_id.as_str().into(),
            serde_json::Value::from(rows).to_string().into(),
        ],
    )
}

/// Forgets what the newest change, a clear, made irrelevant.
pub fn forget_before_newest(db: &dyn Database, session_id: &Id) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_changes
          WHERE session_id = ?1
            AND cursor < (SELECT max(cursor)
                            FROM cf_agents_changes
                           WHERE session_id = ?1)",
        &[session_id.as_str().into()],
    )
}

/// Forgets a session's feed, with the session.
pub fn forget_all(db: &dyn Database, session_id: &Id) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_changes WHERE session_id = ?1",
        &[session_id.as_str().into()],
    )
}

/// Up to `limit` changes after `since`, oldest first, as JSON.
pub fn load_changes(db: &dyn Database, session_id: &Id, since: i64, limit: i64) -> Result<String> {
    // Each half is bounded before they are merged.
    let sql = format!(
        r#"SELECT cursor, '{{"cursor":' || cursor || ',"type":' || json_quote(type) || ',"id":' || json_quote(id) || '}}'
             FROM (SELECT * FROM (SELECT seq * {CURSORS_A_SEQ} AS cursor, 'append' AS type, id
                                    FROM cf_agents_events
                                   WHERE session_id = ?1
                                     AND seq > ?2 / {CURSORS_A_SEQ}
                                   ORDER BY seq
                                   LIMIT ?3)
                   UNION ALL
                   SELECT * FROM (SELECT cursor, type, id
                                    FROM cf_agents_changes
                                   WHERE session_id = ?1
                                     AND cursor > ?2
                                   ORDER BY cursor
                                   LIMIT ?3))
            ORDER BY cursor
            LIMIT ?3"#
    );
    let rows = db.rows(
        &sql,
        &[session_id.as_str().into(), since.into(), limit.into()],
    )?;
    let cursor = rows.last().map_or(Ok(since), |row| row.integer(0))?;
    let changes = rows
        .iter()
        .map(|row| row.text(1))
        .collect::<Result<Vec<_>>>()?
        .join(",");
    Ok(format!(r#"{{"changes":[{changes}],"cursor":{cursor}}}"#))
}
