//! Walks from an event up to its root, newest first, in bounded batches.

use crate::log::row::TreePosition;
use base::columns::load;
use base::database::{Database, Row, find_row};
use base::error::{Error, Result};
use base::ids::Id;
use std::collections::HashMap;

/// Rows that one statement of a walk reads at most. With bodies of at most
/// `INLINE_BYTES` per row, a batch is 4 MiB.
const MAX_BATCH: i64 = 64;

/// How a walk continues after a row.
pub enum WalkStep {
    On,
    /// Continue with this event instead of the row's parent. 0: there is no next event.
    Jump(i64),
    Stop,
}

/// Visits the path from the event at `from_seq` up to its root, newest first.
/// `columns` are columns of an event `e`, and begin with those of [`TreePosition`].
/// If the session has no branches, the first batch reads `expected` rows.
///
/// `+?1` is ?1, and `?3 + 0` is ?3: see [`Database::rows`].
pub fn walk_path(
    db: &dyn Database,
    session_id: &Id,
    from_seq: i64,
    columns: &str,
    expected: i64,
    visit: &mut dyn FnMut(&TreePosition, &Row) -> Result<WalkStep>,
) -> Result<()> {
    let sql = format!(
        "SELECT {columns}
           FROM cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq <= +?2
          ORDER BY e.seq DESC
          LIMIT ?3 + 0"
    );
    let first_batch = if has_branches(db, session_id)? {
        1
    } else {
        expected.clamp(1, MAX_BATCH)
    };
    let mut batch = first_batch;
    let mut next = from_seq;
    loop {
        let rows = db.rows(
            &sql,
            &[session_id.as_str().into(), next.into(), batch.into()],
        )?;
        // Batches start small in each run of neighbors, since the run may end soon.
        batch = (batch * 2).min(MAX_BATCH);
        for row in rows {
            let position: TreePosition = row.read()?;
            if position.seq != next {
                return Err(Error::storage(format!("event {next} of a path is missing")));
            }
            match visit(&position, &row)? {
                WalkStep::Stop => return Ok(()),
                WalkStep::On => next = position.parent_seq,
                WalkStep::Jump(seq) => next = seq,
            }
            if position.is_branch || next != position.parent_seq {
                batch = first_batch;
                break;
            }
        }
        if next == 0 {
            return Ok(());
        }
    }
}

fn has_branches(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_events WHERE session_id = ?1 AND is_branch = 1 LIMIT 1";
    Ok(find_row(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// A run of neighboring rows on a path, both ends included.
#[derive(Debug, PartialEq)]
pub struct PathSegment {
    pub from_seq: i64,
    pub to_seq: i64,
}

/// Whether the event at `seq` is on the path.
pub fn is_on_path(path: &[PathSegment], seq: i64) -> bool {
    path.iter()
        .any(|segment| (segment.from_seq..=segment.to_seq).contains(&seq))
}

/// The whole path that ends at `to_seq`, as segments, oldest first.
pub fn load_segments(db: &dyn Database, session_id: &Id, to_seq: i64) -> Result<Vec<PathSegment>> {
    let mut segments: Vec<PathSegment> = Branches::load(db, session_id)?.path_up(to_seq).collect();
    segments.reverse();
    Ok(segments)
}

/// Where a session's branches begin: the `seq` and parent's `seq` of every row that starts a
/// branch, by `seq`. A caller that needs many paths loads them once.
pub struct Branches(Vec<(i64, i64)>);

impl Branches {
    /// Reads only the session's branch index. The SQL names the index, because the planner would
    /// otherwise scan the log to return the rows in order.
    pub fn load(db: &dyn Database, session_id: &Id) -> Result<Self> {
        let branches = load(
            db,
            "SELECT seq, parent_seq
               FROM cf_agents_events INDEXED BY cf_agents_events_by_parent
              WHERE session_id = +?1
                AND is_branch = 1
              ORDER BY seq",
            &[session_id.as_str().into()],
        )?;
        Ok(Self(branches))
    }

    /// The path that ends at `to_seq`, newest first.
    pub fn path_up(&self, mut to_seq: i64) -> impl Iterator<Item = PathSegment> {
        std::iter::from_fn(move || {
            if to_seq <= 0 {
                return None;
            }
            let below = self.0.partition_point(|(seq, _)| *seq <= to_seq);
            let start = below.checked_sub(1).and_then(|last| self.0.get(last));
            // No branch starts at or below `to_seq`: the segment begins at the log's first row.
            let (from_seq, parent_seq) = start.copied().unwrap_or((1, 0));
            let segment = PathSegment { from_seq, to_seq };
            to_seq = parent_seq;
            Some(segment)
        })
    }
}

/// Whether the event at `seq` is on the path that ends at `to_seq`.
pub fn is_path_between(db: &dyn Database, session_id: &Id, seq: i64, to_seq: i64) -> Result<bool> {
    Ok(is_on_path(&load_segments(db, session_id, to_seq)?, seq))
}

/// The nearest surviving ancestor, or the event itself if it survives (0: none).
pub fn surviving(parents: &HashMap<i64, i64>, mut seq: i64) -> i64 {
    // The loop ends, since a parent's number is always below its child's.
    while let Some(parent) = parents.get(&seq) {
        seq = *parent;
    }
    seq
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_segment_per_branch() {
        let segment = |from_seq, to_seq| PathSegment { from_seq, to_seq };
        // 1 2 3, 4 after 2, 5 6 after 4, 7 after 1, 8 a root.
        let branches = Branches(vec![(4, 2), (7, 1), (8, 0)]);
        let table = [
            (3, vec![segment(1, 3)]),
            (6, vec![segment(1, 2), segment(4, 6)]),
            (7, vec![segment(1, 1), segment(7, 7)]),
            (8, vec![segment(8, 8)]),
            (0, vec![]),
        ];
        for (leaf, expected) in table {
            let mut path: Vec<PathSegment> = branches.path_up(leaf).collect();
            path.reverse();
            assert_eq!(path, expected, "{leaf}");
        }
    }
}
