//! Overlays: stored summaries that stand in for a range of a path when it is
//! read. They hide rows and never change one.
//!
//! An overlay is met where a walk up a path comes to the newest event that it
//! covers, so a branch that leaves the range in its middle doesn't see it. Where
//! two overlap, the one that ends later holds, and of those the wider.

use std::collections::HashMap;

use serde_json::json;

use super::path::{PathRow, PathSegment, WalkStep, load_segments, walk_path};
use crate::base::columns::{FromRow, find, find_value, load, load_values};
use crate::base::database::{Database, Row, SqlText, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::log::find::find_seqs;
use crate::messages::tree::path::surviving;

/// Overlays that a session may have.
pub const MAX_OVERLAYS: i64 = 200;

/// Bytes of one summary. All of a session's are then at most 12.5 MiB.
pub const MAX_SUMMARY_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Overlay {
    pub id: String,
    pub range: EventRange,
    pub from_id: String,
    pub to_id: String,
    pub summary: String,
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
    pub created_at: i64,
}

/// Neighbouring events of a path, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRange {
    pub from_seq: i64,
    pub to_seq: i64,
    /// The event that the first one follows; 0: none.
    pub above_seq: i64,
}

impl Overlay {
    const COLUMNS: &str = "id, from_seq, to_seq, above_seq, from_id, to_id, summary, tokens_before, tokens_after, created_at";
}

impl FromRow<'_> for Overlay {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.text(0)?.to_owned(),
            range: EventRange {
                from_seq: row.integer(1)?,
                to_seq: row.integer(2)?,
                above_seq: row.integer(3)?,
            },
            from_id: row.text(4)?.to_owned(),
            to_id: row.text(5)?.to_owned(),
            summary: row.text(6)?.to_owned(),
            tokens_before: row.find_integer(7),
            tokens_after: row.find_integer(8),
            created_at: row.integer(9)?,
        })
    }
}

/// An overlay without its summary, which is long.
struct OverlayEdges {
    id: String,
    from_id: String,
    to_id: String,
    to_seq: i64,
}

impl OverlayEdges {
    const COLUMNS: &str = "id, from_id, to_id, to_seq";
}

impl FromRow<'_> for OverlayEdges {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.text(0)?.to_owned(),
            from_id: row.text(1)?.to_owned(),
            to_id: row.text(2)?.to_owned(),
            to_seq: row.integer(3)?,
        })
    }
}

/// The overlays of a session, in the order in which a walk from `from_seq` up
/// may meet them. Reads one row at the start, and one for each that it passes.
pub struct Overlays<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    next: Option<Overlay>,
}

impl<'a> Overlays<'a> {
    pub fn below(db: &'a dyn Database, session_id: &'a Id, from_seq: i64) -> Result<Self> {
        let mut overlays = Self {
            db,
            session_id,
            next: None,
        };
        overlays.advance(from_seq)?;
        Ok(overlays)
    }

    fn advance(&mut self, seq: i64) -> Result<()> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_compactions
              WHERE session_id = ?1
                AND to_seq <= ?2
              ORDER BY to_seq DESC, from_seq, number DESC
              LIMIT 1",
            Overlay::COLUMNS
        );
        self.next = find(
            self.db,
            &sql,
            &[self.session_id.as_str().into(), seq.into()],
        )?;
        Ok(())
    }

    /// The newest event that the next one covers; 0: there is none.
    pub fn next_to_seq(&self) -> i64 {
        self.next.as_ref().map_or(0, |overlay| overlay.range.to_seq)
    }

    /// The one that ends at this event of the path, which is then passed.
    pub fn take_ending_at(&mut self, seq: i64) -> Result<Option<Overlay>> {
        if self.next_to_seq() > seq {
            self.advance(seq)?;
        }
        if self.next_to_seq() != seq {
            return Ok(None);
        }
        let overlay = self.next.take();
        if let Some(overlay) = &overlay {
            self.advance(overlay.range.above_seq)?;
        }
        Ok(overlay)
    }
}

/// The overlay that hides the event at `seq` from a reader of the path that
/// ends at `leaf_seq`: where a page begins inside a range. It is one that a walk
/// from the leaf would have met.
pub fn find_covering(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    leaf_seq: i64,
) -> Result<Option<Overlay>> {
    let mut overlays = Overlays::below(db, session_id, leaf_seq)?;
    if overlays.next_to_seq() < seq {
        return Ok(None);
    }
    let path = load_segments(db, session_id, leaf_seq)?;
    if !holds(&path, seq) {
        return Ok(None);
    }
    while overlays.next_to_seq() >= seq {
        let to_seq = overlays.next_to_seq();
        if !holds(&path, to_seq) {
            overlays.advance(to_seq - 1)?;
            continue;
        }
        let covering = overlays.take_ending_at(to_seq)?;
        if let Some(overlay) = covering.filter(|overlay| overlay.range.above_seq < seq) {
            return Ok(Some(overlay));
        }
    }
    Ok(None)
}

fn holds(path: &[PathSegment], seq: i64) -> bool {
    path.iter()
        .any(|segment| (segment.from_seq..=segment.to_seq).contains(&seq))
}

const INSERT: &str = "
    INSERT INTO cf_agents_compactions
           (session_id, to_seq, from_seq, number, id, above_seq, from_id, to_id, summary,
            tokens_before, tokens_after, created_at)";

/// What a new overlay says and hides.
pub struct NewOverlay<'a> {
    pub range: EventRange,
    pub from_id: &'a str,
    pub to_id: &'a str,
    pub summary: &'a str,
    pub tokens_before: Option<i64>,
    pub tokens_after: Option<i64>,
}

/// Part of a transaction that tells the feed. Gives its id.
pub fn insert(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    new: &NewOverlay<'_>,
) -> Result<Id> {
    let id = Id::mint_compaction(host);
    check_room(db, session_id)?;
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
    Ok(id)
}

/// Whether the session may have one more.
pub fn check_room(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "SELECT count(*) FROM cf_agents_compactions WHERE session_id = ?1";
    let count = find_value(db, sql, &[session_id.as_str().into()])?;
    if count.unwrap_or(0) < MAX_OVERLAYS {
        return Ok(());
    }
    Err(Error::invalid(
        "sessionId",
        format!(
            "The session has {MAX_OVERLAYS} compactions, which is the limit. `deleteCompaction` removes one."
        ),
    ))
}

/// One overlay's JSON.
const JSON: &str = r#"
    '{"id":' || json_quote(id)
    || ',"summary":' || json_quote(summary)
    || ',"fromId":' || json_quote(from_id)
    || ',"toId":' || json_quote(to_id)
    || ',"tokensBefore":' || coalesce(tokens_before, 'null')
    || ',"tokensAfter":' || coalesce(tokens_after, 'null')
    || ',"createdAt":' || created_at
    || '}'"#;

pub fn get_json(db: &dyn Database, session_id: &Id, id: &Id) -> Result<SqlText> {
    let sql = format!("SELECT {JSON} FROM cf_agents_compactions WHERE session_id = ?1 AND id = ?2");
    db.find_text(&sql, &[session_id.as_str().into(), id.as_str().into()])?
        .ok_or_else(|| Error::storage("a compaction that was just written is missing"))
}

/// All of a session's, oldest first, as a JSON array.
pub fn load_json(db: &dyn Database, session_id: &Id) -> Result<String> {
    let sql = format!(
        "SELECT {JSON}
           FROM cf_agents_compactions
          WHERE session_id = ?1
          ORDER BY number
          LIMIT {MAX_OVERLAYS}"
    );
    let overlays: Vec<String> = load_values(db, &sql, &[session_id.as_str().into()])?;
    Ok(format!("[{}]", overlays.join(",")))
}

/// All of a session's, oldest first.
pub fn load_overlays(db: &dyn Database, session_id: &Id) -> Result<Vec<Overlay>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
          ORDER BY number
          LIMIT {MAX_OVERLAYS}",
        Overlay::COLUMNS
    );
    load(db, &sql, &[session_id.as_str().into()])
}

/// Writes an overlay as it was exported; the edges must lie on one path. `numbers`:
/// tokens before and after, and when it was made.
pub fn restore(
    db: &dyn Database,
    session_id: &Id,
    id: &Id,
    from_id: &Id,
    to_id: &Id,
    summary: &str,
    numbers: [Option<i64>; 3],
) -> Result<()> {
    let places = find_seqs(db, session_id, [from_id, to_id].into_iter())?;
    let place = |field: &str, id: &Id| {
        let refused =
            || Error::invalid(field, format!("`{field}` names no event of a line above."));
        places.get(id.as_str()).copied().ok_or_else(refused)
    };
    let (from_seq, to_seq) = (place("fromId", from_id)?, place("toId", to_id)?);
    if !holds(&load_segments(db, session_id, to_seq)?, from_seq) {
        return Err(Error::invalid(
            "toId",
            "`fromId` and `toId` must lie on one path, `fromId` first.",
        ));
    }
    if summary.len() > MAX_SUMMARY_BYTES {
        return Err(Error::payload_too_large(
            "`summary`",
            MAX_SUMMARY_BYTES,
            summary.len(),
        ));
    }
    check_room(db, session_id)?;
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
    )
}

/// Takes an overlay away; `false`: there is none of this id. Part of a
/// transaction that tells the feed.
pub fn delete(db: &dyn Database, session_id: &Id, id: &Id) -> Result<bool> {
    let rows = db.rows(
        "DELETE FROM cf_agents_compactions
          WHERE session_id = ?1
            AND id = ?2
      RETURNING id",
        &[session_id.as_str().into(), id.as_str().into()],
    )?;
    Ok(!rows.is_empty())
}

/// Forgets the oldest of those that a wider one hides anyway, but for the newest
/// `kept`. One that a branch may still be read by stays. Gives the ids of those
/// that went.
pub fn prune_nested(
    db: &dyn Database,
    session_id: &Id,
    range: EventRange,
    kept: i64,
) -> Result<Vec<String>> {
    load_values(
        db,
        "DELETE FROM cf_agents_compactions
          WHERE session_id = ?1
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
                        LIMIT -1 OFFSET ?4)
      RETURNING id",
        &[
            session_id.as_str().into(),
            range.from_seq.into(),
            range.to_seq.into(),
            kept.into(),
        ],
    )
}

/// Events were deleted and their children joined to the nearest survivors:
/// overlays whose edge went move to the nearest event that they still cover.
/// One that covers nothing any more goes. Gives the ids of all these.
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
    let doomed: Vec<i64> = parents.keys().copied().collect();
    let params = [
        SqlValue::from(session_id.as_str()),
        SqlValue::Text(json!(doomed).to_string()),
    ];
    let mut changed = Vec::new();
    for overlay in load::<Overlay>(db, &sql, &params)? {
        changed.push(overlay.id.clone());
        let to_seq = surviving(parents, overlay.range.to_seq);
        if to_seq < overlay.range.from_seq {
            let id = Id::parse(overlay.id).map_err(Error::storage)?;
            delete(db, session_id, &id)?;
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

/// The event right below `above_seq` on the path that ends at `to_seq`.
fn find_first_below(
    db: &dyn Database,
    session_id: &Id,
    to_seq: i64,
    above_seq: i64,
) -> Result<i64> {
    let mut first = to_seq;
    let columns = PathRow::COLUMNS;
    walk_path(db, session_id, to_seq, columns, 64, &mut |place, _| {
        first = place.seq;
        Ok(if place.parent_seq == above_seq {
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

/// Copies the overlays of a path, given as `segments`, to a fork of it. The
/// copy is a line, and its events keep their ids. Gives the overlays' own.
pub fn copy(
    db: &dyn Database,
    original_id: &Id,
    segments: &[PathSegment],
    id: &Id,
) -> Result<Vec<String>> {
    let mut copied = Vec::new();
    let edge = |id: String| Id::parse(id).map_err(Error::storage);
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
          ORDER BY number
          LIMIT {MAX_OVERLAYS}",
        OverlayEdges::COLUMNS
    );
    for overlay in load::<OverlayEdges>(db, &sql, &[original_id.as_str().into()])? {
        if !holds(segments, overlay.to_seq) {
            continue;
        }
        let (from, to) = (edge(overlay.from_id)?, edge(overlay.to_id)?);
        let places = find_seqs(db, id, [&from, &to].into_iter())?;
        let (Some(from_seq), Some(to_seq)) = (places.get(from.as_str()), places.get(to.as_str()))
        else {
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
    }
    Ok(copied)
}
