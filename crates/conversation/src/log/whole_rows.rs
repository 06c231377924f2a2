//! Rows of the log with all that a file contains of them.

use super::row::{INLINE_COLUMNS, ShortRow};
use base::database::{Database, Row};
use base::error::Result;
use base::ids::Id;
use base::row;

row! {
    /// An event `e`, and the fields that only its line in a file has.
    pub struct WholeRow<'r>() {
        pub event: ShortRow = *INLINE_COLUMNS,
        pub parent_id: Option<&'r str> = "e.parent_id",
        pub written_at: i64 = "e.written_at",
        pub has_content: bool = "e.content IS NOT NULL",
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
