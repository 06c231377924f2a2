//! Rows of the log with all that a file contains of them.

use super::row::ShortRow;
use base::columns::FromRow;
use base::database::{Database, Row};
use base::error::Result;
use base::ids::Id;

/// An event, and the fields that only its line in a file has.
pub struct WholeRow<'r> {
    pub event: ShortRow,
    pub parent_id: Option<&'r str>,
    pub written_at: i64,
    pub has_content: bool,
}

impl WholeRow<'_> {
    /// The columns of an event `e`.
    fn columns() -> String {
        let event = ShortRow::columns();
        format!("{event}, e.parent_id, e.written_at, e.content IS NOT NULL")
    }
}

impl<'r> FromRow<'r> for WholeRow<'r> {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok(Self {
            event: row.read()?,
            parent_id: row.find_text(16),
            written_at: row.integer(17)?,
            has_content: row.integer(18)? == 1,
        })
    }
}

/// Up to `limit` events after the first `seq` and up to the second, in their order: rows to read
/// as [`WholeRow`].
pub fn load(
    db: &dyn Database,
    session_id: &Id,
    (after_seq, to_seq): (i64, i64),
    limit: i64,
) -> Result<Vec<Row>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq > ?2
            AND e.seq <= ?3
          ORDER BY e.seq
          LIMIT ?4",
        WholeRow::columns()
    );
    let params = [
        session_id.as_str().into(),
        after_seq.into(),
        to_seq.into(),
        limit.into(),
    ];
    db.rows(&sql, &params)
}
