//! Reads the newest events of a path with one statement if the path is a line there: each event
//! follows the one before it, the session has no branch, and no summary covers an event.

use crate::log::tip::IS_NEWEST_LEAF;
use base::row;

/// SQL: one text of at most ?3 events of the session ?1 up to the event ?2, and [`LinearPathRow`].
/// `shown` is SQL for the text of an event `e`; the texts have commas between them. The text is
/// NULL if an event's is, if the events are not a line, or if `unless` is true, which is SQL.
pub fn up_to_leaf(shown: &str, unless: &str) -> String {
    sql_of(
        shown,
        unless,
        "e.seq <= +?2
               AND e.seq > (SELECT ?2 - ?3
                             WHERE NOT EXISTS (SELECT 1
                                                 FROM cf_agents_compactions
                                                WHERE session_id = +?1
                                                  AND to_seq BETWEEN ?2 - ?3 + 1 AND +?2))",
        "NULL",
    )
}

/// As [`up_to_leaf`], up to the session's newest event. Returns no event if that is not the leaf.
pub fn up_to_newest(shown: &str, unless: &str) -> String {
    let range = format!(
        "e.seq > (SELECT newest.seq - ?3
                     FROM (SELECT max(seq) AS seq FROM cf_agents_events WHERE session_id = +?1) AS newest
                    CROSS JOIN cf_agents_sessions AS s
                       ON s.id = +?1
                      AND {IS_NEWEST_LEAF}
                    WHERE NOT EXISTS (SELECT 1
                                        FROM cf_agents_compactions
                                       WHERE session_id = +?1
                                         AND to_seq > newest.seq - ?3))"
    );
    let leaf_id =
        "(SELECT id FROM cf_agents_events WHERE session_id = +?1 ORDER BY seq DESC LIMIT 1)";
    sql_of(shown, unless, &range, leaf_id)
}

/// If each event follows the one before it, their numbers minus their parents' add up to the last
/// number minus the first parent.
///
/// `+?1` and `+?2` are ?1 and ?2: see [`Database::rows`](base::database::Database::rows).
/// `leaf_id`: the SQL that selects the id of the last event.
fn sql_of(shown: &str, unless: &str, range: &str, leaf_id: &str) -> String {
    format!(
        "
    SELECT CAST(iif(count(shown) = count(*)
                    AND sum(seq - parent_seq) = max(seq) - min(parent_seq)
                    AND (count(*) = ?3 OR min(parent_seq) = 0)
                    AND NOT {unless}
                    AND NOT EXISTS (SELECT 1 FROM cf_agents_events WHERE session_id = +?1 AND is_branch = 1),
                    group_concat(shown, ','),
                    NULL) AS BLOB),
           {columns}
      FROM (SELECT e.seq AS seq, e.parent_seq AS parent_seq, {shown} AS shown
              FROM cf_agents_events AS e
             WHERE e.session_id = +?1
               AND {range}
             ORDER BY e.seq)",
        columns = LinearPathRow::columns(leaf_id)
    )
}

row! {
    /// The facts that the statement returns in addition to the text.
    pub struct LinearPathRow(leaf_id: &str) {
        /// The event that the first one follows; 0: none.
        pub above_seq: Option<i64> = "min(parent_seq)",
        /// [`up_to_newest`] only: the id of the last event.
        pub leaf_id: Option<String> = leaf_id,
    }
}
