//! Writes overlays: new ones, imported ones and those of a fork. Also adjusts overlays when
//! events are deleted. Each function must run in its caller's transaction, and the caller
//! records the changes in the feed.

use std::collections::HashMap;

use super::overlays::{EventRange, MAX_OVERLAYS, MAX_SUMMARY_BYTES, Overlay};
use super::path::{PathSegment, WalkStep, is_on_path, is_path_between, surviving, walk_path};
use crate::log::boundary::{self, ChangedBoundary};
use crate::log::find::find_seqs;
use crate::log::row::TreePosition;
use crate::tables::COMPACTIONS;
use base::columns::{find_value, load};
use base::database::{Database, Delete, SqlValue, find_row};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::row;

const INSERT: &str = "
    INSERT INTO cf_agents_compactions
           (session_id, to_seq, from_seq, number, id, above_seq, from_id, to_id, summary,
            tokens_before, tokens_after, created_at)";

/// A new overlay: the range that it hides, and its summary.
pub struct NewOverlay<'a> {
    pub range: EventRange,
    pub from_id: &'a str,
    pub to_id: &'a str,
    pub summary: &'a str,
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
}

/// A new overlay, and what it changed.
pub struct AddedOverlay {
    pub id: Id,
    /// The obsolete overlays that were deleted.
    pub pruned: Vec<String>,
    pub changed: Vec<ChangedBoundary>,
}

/// Inserts a new overlay. `retained`: how many of the newest overlays within its range are kept
/// when obsolete ones are deleted (see [`prune_nested`]).
pub fn insert(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    new: &NewOverlay<'_>,
    retained: Option<i64>,
) -> Result<AddedOverlay> {
    let pruned = match retained {
        Some(retained) => prune_nested(db, session_id, new.range, retained)?,
        None => Vec::new(),
    };
    let id = Id::mint_compaction(host);
    check_capacity(db, session_id)?;
    let sql = format!(
        "{INSERT}
         SELECT ?1, ?2, ?3, coalesce(max(number), 0) + 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
           FROM cf_agents_compactions
          WHERE session_id = ?1"
    );
    db.run(
        &sql,
        &[
            session_id.as_str().into(),
            new.range.to_seq.into(),
            new.range.from_seq.into(),
            id.as_str().into(),
            new.range.above_seq.into(),
            new.from_id.into(),
            new.to_id.into(),
            new.summary.into(),
            new.tokens_before.into(),
            new.tokens_after.into(),
            host.now_ms().into(),
        ],
    )?;
    let ranges = pruned.iter().map(|pruned| pruned.range);
    Ok(AddedOverlay {
        id,
        changed: update_boundaries(db, session_id, ranges.chain([new.range]))?,
        pruned: pruned.into_iter().map(|pruned| pruned.id).collect(),
    })
}

/// Updates the run boundaries at the current and former ends of summaries.
fn update_boundaries(
    db: &dyn Database,
    session_id: &Id,
    ranges: impl Iterator<Item = EventRange>,
) -> Result<Vec<ChangedBoundary>> {
    let (first, last): (Vec<i64>, Vec<i64>) =
        ranges.map(|range| (range.from_seq, range.to_seq)).unzip();
    boundary::update_boundaries(db, session_id, last, first)
}

/// Refuses another overlay if the session has [`MAX_OVERLAYS`].
pub fn check_capacity(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "SELECT count(*) FROM cf_agents_compactions WHERE session_id = ?1";
    let count = find_value(db, sql, &[session_id.as_str().into()])?;
    if count.unwrap_or(0) < MAX_OVERLAYS {
        return Ok(());
    }
    Err(Error::invalid(
        "sessionId",
        format!(
            "The session has {MAX_OVERLAYS} compactions, which is the limit. Remove one with \
             `deleteCompaction`."
        ),
    ))
}

/// Inserts an exported overlay. Both ends must lie on one path, and no overlay of the
/// session may have its id: forks and deletions identify an overlay by its id alone.
/// `numbers` are the tokens before, the tokens after, and the creation time.
pub fn restore(
    db: &dyn Database,
    session_id: &Id,
    id: &Id,
    from_id: &Id,
    to_id: &Id,
    summary: &str,
    numbers: [Option<i64>; 3],
) -> Result<()> {
    let seqs = find_seqs(db, session_id, [from_id, to_id].into_iter())?;
    let seq_of = |field: &str, id: &Id| {
        let refused = || {
            Error::invalid(
                field,
                format!("`{field}` is not an event of an earlier line."),
            )
        };
        seqs.get(id.as_str()).copied().ok_or_else(refused)
    };
    let (from_seq, to_seq) = (seq_of("fromId", from_id)?, seq_of("toId", to_id)?);
    if !is_path_between(db, session_id, from_seq, to_seq)? {
        return Err(Error::invalid(
            "toId",
            "`fromId` and `toId` must be on one path, with `fromId` before `toId`.",
        ));
    }
    if summary.len() > MAX_SUMMARY_BYTES {
        return Err(Error::payload_too_large(
            "`summary`",
            MAX_SUMMARY_BYTES,
            summary.len(),
        ));
    }
    check_capacity(db, session_id)?;
    let sql = "SELECT 1 FROM cf_agents_compactions WHERE session_id = ?1 AND id = ?2";
    if find_row(db, sql, &[session_id.as_str().into(), id.as_str().into()])?.is_some() {
        return Err(Error::invalid(
            "id",
            "An earlier line already has a compaction with this `id`.",
        ));
    }
    let [tokens_before, tokens_after, created_at] = numbers;
    let sql = format!(
        "{INSERT}
         SELECT ?1, ?2, ?3,
                (SELECT coalesce(max(number), 0) + 1
                   FROM cf_agents_compactions
                  WHERE session_id = ?1),
                ?4, e.parent_seq, ?5, ?6, ?7, ?8, ?9, ?10
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?3"
    );
    db.run(
        &sql,
        &[
            session_id.as_str().into(),
            to_seq.into(),
            from_seq.into(),
            id.as_str().into(),
            from_id.as_str().into(),
            to_id.as_str().into(),
            summary.into(),
            tokens_before.into(),
            tokens_after.into(),
            created_at.into(),
        ],
    )?;
    let range = EventRange {
        from_seq,
        to_seq,
        above_seq: 0,
    };
    update_boundaries(db, session_id, std::iter::once(range)).map(drop)
}

row! {
    /// An overlay without its summary, because summaries are long.
    struct OverlayEdges {
        id: String = "id",
        from_id: Id = "from_id",
        to_id: Id = "to_id",
        to_seq: i64 = "to_seq",
    }
}

/// Copies the overlays of a path, given by `segments`, to the fork of this path. The fork
/// has no branches, and its events keep their ids. Returns the overlays' ids.
pub fn copy(
    db: &dyn Database,
    original_id: &Id,
    segments: &[PathSegment],
    id: &Id,
) -> Result<Vec<String>> {
    let mut copied = Vec::new();
    let mut ranges = Vec::new();
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
          ORDER BY number
          LIMIT {MAX_OVERLAYS}",
        OverlayEdges::COLUMNS
    );
    for overlay in load::<OverlayEdges>(db, &sql, &[original_id.as_str().into()])? {
        if !is_on_path(segments, overlay.to_seq) {
            continue;
        }
        let edges = [&overlay.from_id, &overlay.to_id];
        let seqs = find_seqs(db, id, edges.into_iter())?;
        let [Some(from_seq), Some(to_seq)] = edges.map(|edge| seqs.get(edge.as_str())) else {
            return Err(Error::storage("an overlay's edge is not in the fork"));
        };
        let sql = format!(
            "{INSERT}
             SELECT ?3, ?5, ?4, number, id, CAST(?4 AS INTEGER) - 1, from_id, to_id, summary,
                    tokens_before, tokens_after, created_at
               FROM cf_agents_compactions
              WHERE session_id = ?1
                AND id = ?2"
        );
        db.run(
            &sql,
            &[
                original_id.as_str().into(),
                overlay.id.as_str().into(),
                id.as_str().into(),
                (*from_seq).into(),
                (*to_seq).into(),
            ],
        )?;
        copied.push(overlay.id);
        ranges.push(EventRange {
            from_seq: *from_seq,
            to_seq: *to_seq,
            above_seq: from_seq - 1,
        });
    }
    update_boundaries(db, id, ranges.into_iter())?;
    Ok(copied)
}

/// Deletes an overlay and returns the events that no longer split a run. `None`: no overlay has
/// this id.
pub fn delete(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<Vec<ChangedBoundary>>> {
    let range = drop_row(db, session_id, id)?;
    range
        .map(|range| update_boundaries(db, session_id, std::iter::once(range)))
        .transpose()
}

/// Deletes the row and returns the range that the overlay covered.
fn drop_row(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<EventRange>> {
    let params = [session_id.as_str().into(), id.as_str().into()];
    let deletion = Delete::from(COMPACTIONS, "session_id = ?1 AND id = ?2", &params);
    Ok(deletion.load(db, EventRange::COLUMNS)?.pop())
}

row! {
    /// An overlay that a wider one made obsolete.
    struct PrunedOverlay {
        range: EventRange = EventRange::COLUMNS,
        id: String = "id",
    }
}

/// Deletes the overlays within `range` that a wider overlay now hides. Keeps the newest
/// `retained`, and each overlay that is still visible on a branch. Returns the deleted
/// overlays.
fn prune_nested(
    db: &dyn Database,
    session_id: &Id,
    range: EventRange,
    retained: i64,
) -> Result<Vec<PrunedOverlay>> {
    Delete::from(
        COMPACTIONS,
        "session_id = ?1
         AND id IN (SELECT id
                      FROM cf_agents_compactions AS c
                     WHERE session_id = ?1
                       AND to_seq < ?3
                       AND from_seq >= ?2
                       AND NOT EXISTS (SELECT 1
                                         FROM cf_agents_events AS branch
                                        WHERE branch.session_id = ?1
                                          AND branch.is_branch = 1
                                          AND branch.parent_seq >= c.to_seq
                                          AND branch.parent_seq < ?3)
                     ORDER BY to_seq DESC
                     LIMIT -1 OFFSET ?4)",
        &[
            session_id.as_str().into(),
            range.from_seq.into(),
            range.to_seq.into(),
            retained.into(),
        ],
    )
    .load(db, PrunedOverlay::COLUMNS)
}

/// Repairs the overlays after events were deleted. `parents` maps each deleted event to its
/// parent. An overlay whose end was deleted now ends at the nearest event that it still
/// covers. An overlay that covers no event any more is deleted. Returns the ids of all
/// these overlays. The caller must settle the boundaries.
pub fn splice(
    db: &dyn Database,
    session_id: &Id,
    parents: &HashMap<i64, i64>,
) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
            AND (to_seq IN (SELECT value FROM json_each(?2))
              OR from_seq IN (SELECT value FROM json_each(?2))
              OR above_seq IN (SELECT value FROM json_each(?2)))
          LIMIT {MAX_OVERLAYS}",
        Overlay::COLUMNS
    );
    let deleted: Vec<i64> = parents.keys().copied().collect();
    let params = [
        SqlValue::from(session_id.as_str()),
        SqlValue::Text(json::encode(&deleted)?),
    ];
    let mut changed = Vec::new();
    for overlay in load::<Overlay>(db, &sql, &params)? {
        changed.push(overlay.id.clone());
        let to_seq = surviving(parents, overlay.range.to_seq);
        if to_seq < overlay.range.from_seq {
            let id = Id::parse(overlay.id).map_err(Error::storage)?;
            drop_row(db, session_id, &id)?;
            continue;
        }
        let above_seq = surviving(parents, overlay.range.above_seq);
        let from_seq = if parents.contains_key(&overlay.range.from_seq) {
            find_first_below(db, session_id, to_seq, above_seq)?
        } else {
            overlay.range.from_seq
        };
        move_edges(
            db,
            session_id,
            &overlay.id,
            EventRange {
                from_seq,
                to_seq,
                above_seq,
            },
        )?;
    }
    Ok(changed)
}

/// The event directly below `above_seq` on the path that ends at `to_seq`.
fn find_first_below(
    db: &dyn Database,
    session_id: &Id,
    to_seq: i64,
    above_seq: i64,
) -> Result<i64> {
    let mut first = to_seq;
    let columns = TreePosition::COLUMNS;
    walk_path(db, session_id, to_seq, columns, 64, &mut |position, _| {
        first = position.seq;
        Ok(if position.parent_seq == above_seq {
            WalkStep::Stop
        } else {
            WalkStep::On
        })
    })?;
    Ok(first)
}

fn move_edges(db: &dyn Database, session_id: &Id, id: &str, range: EventRange) -> Result<()> {
    db.run(
        "UPDATE cf_agents_compactions AS c
            SET from_seq = ?3,
                to_seq = ?4,
                above_seq = ?5,
                from_id = (SELECT e.id
                             FROM cf_agents_events AS e
                            WHERE e.session_id = ?1
                              AND e.seq = ?3),
                to_id = (SELECT e.id
                           FROM cf_agents_events AS e
                          WHERE e.session_id = ?1
                            AND e.seq = ?4)
          WHERE c.session_id = ?1
            AND c.id = ?2",
        &[
            session_id.as_str().into(),
            id.into(),
            range.from_seq.into(),
            range.to_seq.into(),
            range.above_seq.into(),
        ],
    )
}
