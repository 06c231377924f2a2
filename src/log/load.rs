//! Reading events: one query builder for every filter, and JSON that SQLite
//! makes and nobody copies.

use serde_json::json;

use super::event::{Action, EVENT_COLUMNS, EVENT_JSON, MESSAGE, SLICED_BYTES, StoredEvent};
use super::slices::load_slices;
use crate::database::{Database, Row, Text, Value, find_row};
use crate::error::{Code, Error, Result};
use crate::ids::Id;

/// The most that one read answers, in bytes of stored text: a page over it is
/// refused with advice, not cut. A quarter of what an object may hold in memory.
pub const MAX_READ_BYTES: usize = 32 << 20;

/// Which events of a session, and how many.
pub struct EventQuery<'a> {
    pub session_id: &'a Id,
    pub limit: i64,
    /// Only those created at this time or later.
    pub since_ms: Option<i64>,
    pub actions: Option<&'a [Action]>,
    pub after_seq: Option<i64>,
    pub before_seq: Option<i64>,
    /// The newest that match rather than the oldest; in `seq` order all the same.
    pub newest: bool,
}

impl EventQuery<'_> {
    /// The rows that match, aliased `e`, bounded by `limit`, in no promised order.
    fn build(&self, columns: &str) -> (String, Vec<Value>) {
        let mut params: Vec<Value> = vec![self.session_id.as_str().into()];
        let mut clauses = String::from("e.session_id = ?1");
        let mut filter = |clause: &str, value: Value| {
            params.push(value);
            clauses.push_str(&format!(
                "\n   AND {}",
                clause.replace('?', &format!("?{}", params.len()))
            ));
        };
        if let Some(since_ms) = self.since_ms {
            filter("e.created_at >= ?", since_ms.into());
        }
        if let Some(actions) = self.actions {
            filter(
                "e.action IN (SELECT value FROM json_each(?))",
                json!(actions).to_string().into(),
            );
        }
        if let Some(after_seq) = self.after_seq {
            filter("e.seq > ?", after_seq.into());
        }
        if let Some(before_seq) = self.before_seq {
            filter("e.seq < ?", before_seq.into());
        }
        params.push(self.limit.into());
        let order = if self.newest { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT {columns}
  FROM cf_agents_events AS e
 WHERE {clauses}
 ORDER BY e.seq {order}
 LIMIT ?{}",
            params.len()
        );
        (sql, params)
    }
}

/// The events as a JSON array in `seq` order.
pub fn load_events(db: &dyn Database, query: &EventQuery<'_>) -> Result<Text> {
    let (inner, params) = query.build(&format!(
        "e.seq AS seq, e.sliced_bytes AS sliced_bytes, {EVENT_JSON} AS event"
    ));
    let sql = format!(
        "SELECT iif(coalesce(max(sliced_bytes), 0) = 0,
                    '[' || coalesce(group_concat(event, ',' ORDER BY seq), '') || ']',
                    NULL)
           FROM ({inner})"
    );
    match db.find_text(&sql, &params) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => load_row_by_row(db, query),
        // A damaged row, or a page that is too long for one value of SQLite's.
        Err(error) => {
            find_damaged(db, query)?;
            load_row_by_row(db, query).map_err(|second| match second.code {
                Code::StorageFailed => error,
                _ => second,
            })
        }
    }
}

/// Puts an event's sliced columns where they would be, had its row had room.
fn fill_in_slices(db: &dyn Database, row: &mut Row) -> Result<()> {
    if row.integer(SLICED_BYTES)? == 0 {
        return Ok(());
    }
    let mut fields = load_slices(db, row.text(1)?, row.integer(2)?, row.find_text(MESSAGE))?;
    for (field, column) in [("content", 5), ("tool", 6), ("metadata", 7)] {
        if let (Some(text), Some(cell)) = (fields.remove(field), row.0.get_mut(column)) {
            *cell = Value::Text(text);
        }
    }
    Ok(())
}

fn find_damaged(db: &dyn Database, query: &EventQuery<'_>) -> Result<()> {
    let (inner, params) = query.build(
        "e.id AS id, e.seq AS seq, json_valid(coalesce(e.metadata, '{}')) AND json_valid(coalesce(e.tool, '{}')) AS valid",
    );
    let sql = format!("SELECT id FROM ({inner}) WHERE NOT valid ORDER BY seq LIMIT 1");
    match find_row(db, &sql, &params)? {
        Some(row) => Err(Error::corrupt_row(row.text(0)?, "metadata")),
        None => Ok(()),
    }
}

fn load_row_by_row(db: &dyn Database, query: &EventQuery<'_>) -> Result<Text> {
    let (inner, params) = query.build(
        "coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool), 0) + coalesce(octet_length(e.metadata), 0) + e.sliced_bytes AS bytes",
    );
    let row = find_row(
        db,
        &format!("SELECT coalesce(sum(bytes), 0) FROM ({inner})"),
        &params,
    )?;
    let bytes = row.and_then(|row| row.find_integer(0)).unwrap_or(0);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > MAX_READ_BYTES {
        return Err(Error::payload_too_large(
            "The page of events (ask for fewer with `limit`)",
            MAX_READ_BYTES,
            bytes,
        ));
    }
    let (inner, params) = query.build(EVENT_COLUMNS);
    let mut rows = db.rows(&inner, &params)?;
    rows.sort_by_key(|row| row.find_integer(2));
    for row in &mut rows {
        fill_in_slices(db, row)?;
    }
    let events = rows
        .iter()
        .map(StoredEvent::from_row)
        .collect::<Result<Vec<_>>>()?;
    let json = serde_json::to_string(&events).map_err(|error| Error::storage(error.to_string()))?;
    Ok(json.into())
}
