//! The children of an event: the next row, if it is a child, and the children in the
//! branch index.

use crate::log::event::IS_RUN_MEMBER;
use crate::log::row::EventLink;
use base::columns::{load, load_values};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;

/// The children's `seq`, oldest first. `parent_seq` 0: the roots.
pub fn load_children(db: &dyn Database, session_id: &Id, parent_seq: i64) -> Result<Vec<i64>> {
    load_values(
        db,
        "SELECT seq
           FROM (SELECT seq, parent_seq, is_branch
                   FROM cf_agents_events
                  WHERE session_id = ?1
                    AND seq > ?2
                  ORDER BY seq
                  LIMIT 1)
          WHERE parent_seq = ?2
            AND is_branch = 0
         UNION ALL
         SELECT seq
           FROM cf_agents_events
          WHERE session_id = ?1
            AND parent_seq = ?2
            AND is_branch = 1
          ORDER BY seq",
        &[session_id.as_str().into(), parent_seq.into()],
    )
}

/// The children's links, oldest first.
pub fn load_child_links(
    db: &dyn Database,
    session_id: &Id,
    parent_seq: i64,
) -> Result<Vec<EventLink>> {
    let children = load_children(db, session_id, parent_seq)?;
    if children.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {}
           FROM json_each(?2) AS child
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = child.value
          ORDER BY e.seq",
        EventLink::COLUMNS
    );
    let list = SqlValue::Text(json::encode(&children)?);
    load(db, &sql, &[session_id.as_str().into(), list])
}

/// The links of the two oldest children, or of the two oldest that are members of runs.
pub fn load_oldest_links(
    db: &dyn Database,
    session_id: &Id,
    parent_seq: i64,
    only_members: bool,
) -> Result<Vec<EventLink>> {
    let children = load_children(db, session_id, parent_seq)?;
    let condition = if only_members { IS_RUN_MEMBER } else { "1" };
    let sql = format!(
        "SELECT {}
           FROM json_each(?2) AS child
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = child.value
          WHERE {condition}
          ORDER BY child.value
          LIMIT 2",
        EventLink::COLUMNS
    );
    let list = SqlValue::Text(json::encode(&children)?);
    load(db, &sql, &[session_id.as_str().into(), list])
}
