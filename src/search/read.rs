//! Events as the index and the snippets read them: their bodies, no more of each than
//! is asked for, whether they stand in their row or in slices.

use std::collections::HashMap;

use super::document::EventText;
use crate::base::database::{Database, Row};
use crate::base::error::Result;

/// What stands in an event's row `e`, and how many bytes of it are in slices.
const ROW: &str = "e.seq, e.id, e.action, e.created_at, e.sliced_bytes";

/// An event's bodies.
pub struct Stored {
    pub seq: i64,
    pub id: String,
    pub action: String,
    pub created_at: i64,
    content: Option<String>,
    tool: Option<String>,
    metadata: Option<String>,
    message: Option<String>,
}

impl Stored {
    pub fn as_text(&self) -> EventText<'_> {
        EventText {
            action: &self.action,
            content: self.content.as_deref().unwrap_or_default(),
            tool: self.tool.as_deref(),
            metadata: self.metadata.as_deref(),
            message: self.message.as_deref(),
            created_at: self.created_at,
            session_name: None,
        }
    }

    /// About what is read of it.
    pub fn bytes(&self) -> usize {
        let bodies = [&self.content, &self.tool, &self.metadata, &self.message];
        bodies.into_iter().flatten().map(String::len).sum()
    }
}

/// An event, its bodies cut after so many slices of 1 MB each.
pub fn find_event(
    db: &dyn Database,
    session_id: &str,
    seq: i64,
    max_slices: i64,
) -> Result<Option<Stored>> {
    let sql = format!(
        "SELECT {ROW}, e.content, e.tool, e.metadata, e.message
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2"
    );
    let rows = db.rows(&sql, &[session_id.into(), seq.into()])?;
    rows.first()
        .map(|row| from_row(db, session_id, row, max_slices))
        .transpose()
}

/// The newest events below `below`, newest first; those of more bytes than
/// `inline_bytes` come as `None` and are found one by one.
pub fn load_newest_below(
    db: &dyn Database,
    session_id: &str,
    below: i64,
    limit: i64,
    inline_bytes: i64,
) -> Result<Vec<(i64, Option<Stored>)>> {
    let bytes = "coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool), 0)
                 + coalesce(octet_length(e.metadata), 0) + coalesce(octet_length(e.message), 0)
                 + e.sliced_bytes";
    let bodies = ["content", "tool", "metadata", "message"]
        .map(|body| format!("iif({bytes} <= ?4, e.{body}, NULL)"))
        .join(", ");
    let sql = format!(
        "SELECT {ROW}, {bodies}, {bytes} <= ?4
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq < ?2
          ORDER BY e.seq DESC
          LIMIT ?3"
    );
    let params = [
        session_id.into(),
        below.into(),
        limit.into(),
        inline_bytes.into(),
    ];
    let rows = db.rows(&sql, &params)?;
    rows.iter()
        .map(|row| {
            let is_short = row.integer(9)? == 1;
            let stored = is_short.then(|| from_row(db, session_id, row, 0));
            Ok((row.integer(0)?, stored.transpose()?))
        })
        .collect()
}

fn from_row(db: &dyn Database, session_id: &str, row: &Row, max_slices: i64) -> Result<Stored> {
    let seq = row.integer(0)?;
    let mut sliced = match row.integer(4)? {
        0 => HashMap::new(),
        _ => load_slices(db, session_id, seq, max_slices)?,
    };
    let mut body = |column: usize, name: &str| {
        let stored = row.find_text(column).map(str::to_owned);
        sliced.remove(name).or(stored)
    };
    Ok(Stored {
        seq,
        id: row.text(1)?.to_owned(),
        action: row.text(2)?.to_owned(),
        created_at: row.integer(3)?,
        content: body(5, "content"),
        tool: body(6, "tool"),
        metadata: body(7, "metadata"),
        message: body(8, "message"),
    })
}

fn load_slices(
    db: &dyn Database,
    session_id: &str,
    seq: i64,
    max_slices: i64,
) -> Result<HashMap<String, String>> {
    let rows = db.rows(
        "SELECT field, text
           FROM cf_agents_slices
          WHERE session_id = ?1
            AND seq = ?2
            AND part < ?3
          ORDER BY field, part",
        &[session_id.into(), seq.into(), max_slices.into()],
    )?;
    let mut bodies: HashMap<String, String> = HashMap::new();
    for row in &rows {
        let body = bodies.entry(row.text(0)?.to_owned()).or_default();
        body.push_str(row.text(1)?);
    }
    Ok(bodies)
}
