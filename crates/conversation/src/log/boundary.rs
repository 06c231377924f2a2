//! Run boundaries: where runs are split into messages. A run of assistant and tool events
//! is one message, unless a branch or a summary splits it. The event at the split has
//! `splits_run = 1` in its row, so a reader of the row needs no further read.
//!
//! A run is split
//!
//! - above the children of an event with several children: its message is the same on each
//!   branch. But a tool's result that arrives after a user continued belongs to the message
//!   with the call;
//! - where a summary begins or ends: a reader of a path sees the summary in between.
//!
//! An event whose parent is in no run always starts a message, and splits nothing.
//!
//! Invariant: the column equals [`SPLITS_RUN`], the only definition of the rule. `write_rows` sets
//! it for new rows. Everything else that changes an event's children, an event's kind or the ends
//! of a summary must call [`update_boundaries`] in the same transaction. `verify` compares. The
//! totals of paths count messages, so [`update_boundaries`] corrects them, too (`totals.rs`).

use std::collections::BTreeSet;

use base::action::{Action, result_action};
use base::columns::{load, load_values};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::row;

use crate::log::event::is_run_member;

/// SQL: whether a sibling `other` splits the run above event `e`. A tool's result stays in its
/// message if the other is not of a run, such as a user's message.
macro_rules! is_split_by_other {
    () => {
        concat!(
            "(e.action <> ",
            result_action!(),
            " OR ",
            is_run_member!("other"),
            ")"
        )
    };
}

macro_rules! splits_run {
    () => {
        concat!(
            "CASE
               WHEN ",
            is_run_member!("e"),
            "
                AND EXISTS (SELECT 1
                              FROM cf_agents_events AS parent
                             WHERE parent.session_id = e.session_id
                               AND parent.seq = e.parent_seq
                               AND ",
            is_run_member!("parent"),
            ")
                AND (EXISTS (SELECT 1
                               FROM cf_agents_events AS other INDEXED BY cf_agents_events_by_parent
                              WHERE other.session_id = e.session_id
                                AND other.parent_seq = e.parent_seq
                                AND other.is_branch = 1
                                AND other.seq <> e.seq
                                AND ",
            is_split_by_other!(),
            ")
                     OR EXISTS (SELECT 1
                                  FROM cf_agents_events AS other
                                 WHERE other.session_id = e.session_id
                                   AND other.seq = (SELECT min(seq)
                                                      FROM cf_agents_events
                                                     WHERE session_id = e.session_id
                                                       AND seq > e.parent_seq)
                                   AND other.parent_seq = e.parent_seq
                                   AND other.is_branch = 0
                                   AND other.seq <> e.seq
                                   AND ",
            is_split_by_other!(),
            ")
                     OR EXISTS (SELECT 1
                                  FROM cf_agents_compactions AS cut
                                 WHERE cut.session_id = e.session_id
                                   AND cut.to_seq >= e.parent_seq
                                   AND (cut.to_seq = e.parent_seq OR cut.from_seq = e.seq)))
               THEN 1
               ELSE 0
             END"
        )
    };
}

/// SQL: 1 if event `e` splits a run, else 0. The `CASE` evaluates the cheapest condition
/// first, and stops at the first match.
pub const SPLITS_RUN: &str = splits_run!();

/// SQL: whether the row `t` of the log has an incorrect `splits_run`.
pub const IS_WRONG: &str = concat!(
    "EXISTS (SELECT 1
               FROM cf_agents_events AS e
              WHERE e.session_id = t.session_id
                AND e.seq = t.seq
                AND e.splits_run <> ",
    splits_run!(),
    ")"
);

/// SQL: whether event `e` and its parent are of one run, if nothing splits it between them.
macro_rules! joins_parent {
    () => {
        concat!(
            "(",
            is_run_member!("e"),
            " AND EXISTS (SELECT 1
                            FROM cf_agents_events AS parent
                           WHERE parent.session_id = e.session_id
                             AND parent.seq = e.parent_seq
                             AND ",
            is_run_member!("parent"),
            "))"
        )
    };
}

/// SQL: whether event `e` starts a message.
pub const STARTS_MESSAGE: &str = concat!("(e.splits_run = 1 OR NOT ", joins_parent!(), ")");

/// SQL: whether the row `t` of the log has incorrect totals of messages (`totals.rs`).
pub const TOTAL_IS_WRONG: &str = concat!(
    "EXISTS (SELECT 1
               FROM cf_agents_events AS e
              WHERE e.session_id = t.session_id
                AND e.seq = t.seq
                AND (e.path_messages IS NULL) + (e.path_tokens IS NULL) <> 2
                AND e.path_messages + e.more_messages IS NOT iif(e.splits_run = 1 OR NOT ",
    joins_parent!(),
    ", 1, 0)
                    + iif(e.parent_seq = 0, 0, (SELECT above.path_messages
                                                  FROM cf_agents_events AS above
                                                 WHERE above.session_id = e.session_id
                                                   AND above.seq = e.parent_seq)))"
);

row! {
    /// An event that now splits a run, or no longer does.
    #[derive(Debug, PartialEq)]
    pub struct ChangedBoundary {
        pub seq: i64 = "seq",
        pub parent_seq: i64 = "parent_seq",
        pub id: String = "id",
    }
}

/// SQL: corrects the column of the events that the SELECT returns. Writes only rows that
/// change. `+?1` is ?1: see [`Database::rows`].
macro_rules! settling {
    ($($numbers:tt)+) => {
        concat!(
            "UPDATE cf_agents_events AS e
                SET splits_run = 1 - splits_run,
                    more_messages = more_messages + CASE
                      WHEN path_messages IS NULL THEN 0
                      WHEN splits_run = 0 THEN 1
                      ELSE - (",
            joins_parent!(),
            ")
                    END
              WHERE e.session_id = +?1
                AND e.seq IN (",
            $($numbers)+,
            ")
                AND e.splits_run <> ",
            splits_run!(),
        )
    };
}

/// ?2: events whose children are updated; ?3: further events.
const SETTLE: &str = settling!(
    "SELECT (SELECT min(next.seq)
               FROM cf_agents_events AS next
              WHERE next.session_id = +?1
                AND next.seq > parent.value)
       FROM json_each(?2) AS parent
     UNION ALL
     SELECT child.seq
       FROM json_each(?2) AS parent
      CROSS JOIN cf_agents_events AS child INDEXED BY cf_agents_events_by_parent
         ON child.session_id = +?1
        AND child.parent_seq = parent.value
        AND child.is_branch = 1
     UNION ALL
     SELECT value
       FROM json_each(?3)"
);

/// Updates the boundaries at the children of `parents`, and at the events `seqs`. Must run
/// in the transaction that changed an event's siblings, an event's kind, or where a summary
/// begins or ends. Returns the events that changed, oldest first.
pub fn update_boundaries(
    db: &dyn Database,
    session_id: &Id,
    parents: impl IntoIterator<Item = i64>,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<Vec<ChangedBoundary>> {
    // A root splits nothing, even if there are other roots.
    let parents: BTreeSet<i64> = parents.into_iter().filter(|seq| *seq != 0).collect();
    let seqs: BTreeSet<i64> = seqs.into_iter().collect();
    if parents.is_empty() && seqs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{SETTLE} RETURNING {}", ChangedBoundary::COLUMNS);
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(&parents)?),
        SqlValue::Text(json::encode(&seqs)?),
    ];
    let mut changed: Vec<ChangedBoundary> = load(db, &sql, &params)?;
    changed.sort_by_key(|event| event.seq);
    Ok(changed)
}

/// The position of a new event of a run: its number, its parent's, and its action.
pub(crate) type NewPosition = (i64, i64, Action);

const SPLITTING: &str = concat!(
    "SELECT e.seq
       FROM (SELECT +?1 AS session_id, value ->> 0 AS seq, value ->> 1 AS parent_seq,
                    value ->> 2 AS action, NULL AS message
               FROM json_each(?2)) AS e
      WHERE 1 = ",
    splits_run!(),
);

/// Which of these new events will split a run of the log.
pub(crate) fn find_splitting(
    db: &dyn Database,
    session_id: &Id,
    positions: &[NewPosition],
) -> Result<BTreeSet<i64>> {
    if positions.is_empty() {
        return Ok(BTreeSet::new());
    }
    let positions: Vec<(i64, i64, &str)> = positions
        .iter()
        .map(|(seq, parent_seq, action)| (*seq, *parent_seq, action.name()))
        .collect();
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(&positions)?),
    ];
    let found: Vec<i64> = load_values(db, SPLITTING, &params)?;
    Ok(found.into_iter().collect())
}

/// Like [`SETTLE`], for a new event that started a branch below ?2. Of many children only
/// two can change, because a third child causes no new split: the oldest child, and the
/// oldest tool result, which is split only by another event of a run (?4: whether there is
/// a new one). ?3: the events that were written together.
const SETTLE_SIBLINGS: &str = concat!(settling!(
    "SELECT min(next.seq)
           FROM cf_agents_events AS next
          WHERE next.session_id = +?1
            AND next.seq > +?2
         UNION ALL
         SELECT *
           FROM (SELECT child.seq
                   FROM cf_agents_events AS child INDEXED BY cf_agents_events_by_parent
                  WHERE child.session_id = +?1
                    AND child.parent_seq = +?2
                    AND child.is_branch = 1
                  ORDER BY child.seq
                  LIMIT 1)
         UNION ALL
         SELECT *
           FROM (SELECT child.seq
                   FROM cf_agents_events AS child INDEXED BY cf_agents_events_by_parent
                  WHERE +?4 = 1
                    AND child.session_id = +?1
                    AND child.parent_seq = +?2
                    AND child.is_branch = 1
                    AND child.action = ",
    result_action!(),
    "
                  ORDER BY child.seq
                  LIMIT 1)
         UNION ALL
         SELECT value
           FROM json_each(?3)"
));

/// Finds event ?2 if it is in a run.
const IN_RUN: &str = concat!(
    "SELECT parent.seq
       FROM cf_agents_events AS parent
      WHERE parent.session_id = +?1
        AND parent.seq = +?2
        AND ",
    is_run_member!("parent")
);

/// Updates the children of an event below which `seqs` started branches. Readers of the
/// feed detect the split by the new events (`messages/feed.rs`). `has_run_member`: one of
/// them is in a run.
pub(crate) fn update_sibling_boundaries(
    db: &dyn Database,
    session_id: &Id,
    parent_seq: i64,
    seqs: &[i64],
    has_run_member: bool,
) -> Result<()> {
    // Nothing is split below an event of no run, such as a user's message.
    let params = [session_id.as_str().into(), parent_seq.into()];
    if load_values::<i64>(db, IN_RUN, &params)?.is_empty() {
        return Ok(());
    }
    // A single new event was already written with the correct value.
    let seqs = if seqs.len() > 1 { seqs } else { &[] };
    let params = [
        session_id.as_str().into(),
        parent_seq.into(),
        SqlValue::Text(json::encode(&seqs)?),
        u32::from(has_run_member).into(),
    ];
    db.run(SETTLE_SIBLINGS, &params)
}
