//! Reads events for the index and the snippets: their bodies, up to the size that the
//! caller asks for. A body is in its event's row or in slices.

use std::collections::HashMap;

use base::action::StoredAction;
use base::columns::{find, load};
use base::database::Database;
use base::error::Result;
use base::row;
use search::document::EventText;

/// An event with its bodies.
pub struct EventBodies {
    pub seq: i64,
    pub id: String,
    pub action: StoredAction,
    pub created_at: i64,
    content: Option<String>,
    tool: Option<String>,
    metadata: Option<String>,
    message: Option<String>,
}

impl EventBodies {
    pub fn as_text(&self) -> EventText<'_> {
        EventText {
            role: self.action.role(),
            content: self.content.as_deref().unwrap_or_default(),
            tool: self.tool.as_deref(),
            metadata: self.metadata.as_deref(),
            message: self.message.as_deref(),
            created_at: self.created_at,
            session_name: None,
        }
    }

    /// Bytes of the bodies that were read.
    pub fn bytes(&self) -> usize {
        let bodies = [&self.content, &self.tool, &self.metadata, &self.message];
        bodies.into_iter().flatten().map(String::len).sum()
    }
}

/// An event's row.
struct StoredRow {
    event: EventBodies,
    /// Bytes of the event's bodies that are in slices.
    sliced_bytes: i64,
}

impl StoredRow {
    /// The event, with the first `max_slices` slices of each sliced body.
    fn complete(self, db: &dyn Database, session_id: &str, max_slices: i64) -> Result<EventBodies> {
        let mut event = self.event;
        if self.sliced_bytes == 0 {
            return Ok(event);
        }
        let mut sliced = load_slices(db, session_id, event.seq, max_slices)?;
        event.content = sliced.remove("content").or(event.content);
        event.tool = sliced.remove("tool").or(event.tool);
        event.metadata = sliced.remove("metadata").or(event.metadata);
        event.message = sliced.remove("message").or(event.message);
        Ok(event)
    }
}

row! {
    /// Columns of an event `e`. `body` gives the SQL for one body.
    for StoredRow(body: impl Fn(&str) -> String) {
        seq: i64 = "e.seq",
        id: String = "e.id",
        action: StoredAction = "e.action",
        created_at: i64 = "e.created_at",
        sliced_bytes: i64 = "e.sliced_bytes",
        content: Option<String> = body("content"),
        tool: Option<String> = body("tool"),
        metadata: Option<String> = body("metadata"),
        message: Option<String> = body("message"),
    }
    Ok(Self {
        event: EventBodies {
            seq,
            id,
            action,
            created_at,
            content,
            tool,
            metadata,
            message,
        },
        sliced_bytes,
    })
}

/// SQL: the bytes of the bodies of an event `e`.
const BODY_BYTES: &str = "coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool), 0)
                 + coalesce(octet_length(e.metadata), 0) + coalesce(octet_length(e.message), 0)
                 + e.sliced_bytes";

row! {
    /// A row of a page of events. The bodies of a long event are read separately: of one that
    /// has more than `most` bytes, which is SQL.
    pub struct PageRow(most: &str) {
        row: StoredRow = StoredRow::columns(
            |body| format!("iif({BODY_BYTES} <= {most}, e.{body}, NULL)")
        ),
        is_short: bool = format!("{BODY_BYTES} <= {most}"),
    }
}

impl PageRow {
    pub fn seq(&self) -> i64 {
        self.row.event.seq
    }

    /// The event, if it is short.
    fn into_short(self) -> Option<EventBodies> {
        self.is_short.then_some(self.row.event)
    }

    /// The event. In a long one, each body is truncated after `max_slices` slices of 1 MB.
    pub fn find_event(
        self,
        db: &dyn Database,
        session_id: &str,
        max_slices: i64,
    ) -> Result<Option<EventBodies>> {
        if self.is_short {
            Ok(Some(self.row.event))
        } else {
            find_event(db, session_id, self.row.event.seq, max_slices)
        }
    }
}

/// An event, with each body truncated after `max_slices` slices of 1 MB.
pub fn find_event(
    db: &dyn Database,
    session_id: &str,
    seq: i64,
    max_slices: i64,
) -> Result<Option<EventBodies>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2",
        StoredRow::columns(|body| format!("e.{body}"))
    );
    find(db, &sql, &[session_id.into(), seq.into()])?
        .map(|row: StoredRow| row.complete(db, session_id, max_slices))
        .transpose()
}

/// The newest events whose `seq` is less than `below`, newest first. An event of more than
/// `inline_bytes` is returned as `None`; [`find_event`] can read it.
pub fn load_newest_below(
    db: &dyn Database,
    session_id: &str,
    below: i64,
    limit: i64,
    inline_bytes: i64,
) -> Result<Vec<(i64, Option<EventBodies>)>> {
    let columns = PageRow::columns("?4");
    let sql = format!(
        "SELECT {columns}
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
    let rows = load::<PageRow>(db, &sql, &params)?;
    Ok(rows
        .into_iter()
        .map(|row| (row.seq(), row.into_short()))
        .collect())
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
        let (field, text): (&str, &str) = row.read()?;
        bodies.entry(field.to_owned()).or_default().push_str(text);
    }
    Ok(bodies)
}
