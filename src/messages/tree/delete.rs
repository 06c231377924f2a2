//! Deleting events: what is left keeps hanging together. A deleted event's
//! children join its nearest surviving ancestor, and its `seq` is never given
//! again.

use crate::messages::tree::path::surviving;
use std::collections::HashMap;

use serde_json::json;

use super::overlays::splice;
use crate::base::columns::{FromRow, load};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::Result;
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::log::media;
use crate::log::row::EventLink;
use crate::log::slices::delete_slices;
use crate::log::tip::LogTip;
use crate::search::index;

/// What a deletion took out of the tree, and what it moved.
#[derive(Default)]
pub struct DeletionOutcome {
    /// In the order of the request.
    pub gone: Vec<DeletedEvent>,
    /// Children of what is gone, with the ancestors that they joined.
    pub moved: Vec<ReparentedEvent>,
    /// Overlays whose edges moved, or that are gone.
    pub overlays: Vec<String>,
}

/// An event that went.
pub struct DeletedEvent {
    pub link: EventLink,
    /// Where media was cut out of it.
    media: Option<String>,
}

impl DeletedEvent {
    /// Of an event `e`.
    fn columns() -> String {
        format!("{}, e.media", EventLink::columns())
    }
}

impl FromRow<'_> for DeletedEvent {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            link: row.read()?,
            media: row.find_text(5).map(str::to_owned),
        })
    }
}

/// An event whose parent went.
pub struct ReparentedEvent {
    /// As it was before.
    pub link: EventLink,
    /// 0: it is a root now.
    pub parent_seq: i64,
}

impl DeletionOutcome {
    /// What is gone with its parent, for [`surviving`].
    pub fn parents(&self) -> HashMap<i64, i64> {
        self.gone
            .iter()
            .map(|gone| (gone.link.seq, gone.link.parent_seq))
            .collect()
    }
}

/// Takes these events out of the tree and joins what hung on them. Part of a
/// transaction that tells the feed what is given back here.
pub fn delete_seqs(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    tip: &LogTip,
    seqs: &[i64],
) -> Result<DeletionOutcome> {
    if seqs.is_empty() {
        return Ok(DeletionOutcome::default());
    }
    let list = SqlValue::Text(json!(seqs).to_string());
    let here = SqlValue::from(session_id.as_str());

    let mut taken = DeletionOutcome {
        gone: load_doomed(db, &here, &list)?,
        ..DeletionOutcome::default()
    };
    let parents = taken.parents();
    taken.moved = load_orphans(db, &here, &list, &parents)?;
    let uses: Vec<(i64, &str)> = taken
        .gone
        .iter()
        .filter_map(|gone| Some((gone.link.seq, gone.media.as_deref()?)))
        .collect();
    db.run(
        "DELETE FROM cf_agents_events
          WHERE session_id = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &[here.clone(), list],
    )?;
    delete_slices(db, session_id, seqs)?;
    media::forget(db, session_id, &uses, &[])?;
    if let Some(place) = index::find_place(db, session_id.as_str())? {
        index::remove(db, &place, seqs)?;
    }
    adopt(db, &here, &taken.moved)?;
    taken.overlays = splice(db, session_id, &parents)?;

    // The chosen leaf, if it went, steps back along its own branch. A choice that
    // an append has overruled stays overruled, also when that append goes.
    db.run(
        "UPDATE cf_agents_sessions
            SET seq_floor = max(seq_floor, ?2),
                leaf_seq = CASE
                  WHEN leaf_chosen_at < ?2 THEN NULL
                  WHEN leaf_seq IN (SELECT value ->> 0 FROM json_each(?3))
                  THEN (SELECT nullif(value ->> 1, 0)
                          FROM json_each(?3)
                         WHERE value ->> 0 = leaf_seq)
                  ELSE leaf_seq
                END,
                updated_at = ?4
          WHERE id = ?1",
        &[
            here,
            tip.newest_seq.into(),
            SqlValue::Text(json!(survivors(&parents)).to_string()),
            host.now_ms().into(),
        ],
    )?;
    Ok(taken)
}

fn load_doomed(db: &dyn Database, here: &SqlValue, doomed: &SqlValue) -> Result<Vec<DeletedEvent>> {
    let sql = format!(
        "SELECT {}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = doomed.value",
        DeletedEvent::columns()
    );
    load(db, &sql, &[here.clone(), doomed.clone()])
}

/// Each doomed event with its nearest surviving ancestor (0: none).
fn survivors(parents: &HashMap<i64, i64>) -> Vec<(i64, i64)> {
    parents
        .keys()
        .map(|seq| (*seq, surviving(parents, *seq)))
        .collect()
}

/// Surviving children of the doomed: those right after their parent, and those
/// in the branch index, which has to be named: left to choose, the planner walks
/// the log. Each with the ancestor that it joins.
fn load_orphans(
    db: &dyn Database,
    here: &SqlValue,
    doomed: &SqlValue,
    parents: &HashMap<i64, i64>,
) -> Result<Vec<ReparentedEvent>> {
    let columns = EventLink::columns().replace("e.", "child.");
    let sql = format!(
        "SELECT {columns}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS child
             ON child.session_id = ?1
            AND child.seq = (SELECT min(seq)
                               FROM cf_agents_events
                              WHERE session_id = ?1
                                AND seq > doomed.value)
            AND child.parent_seq = doomed.value
            AND child.is_branch = 0
         UNION ALL
         SELECT {columns}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS child INDEXED BY cf_agents_events_by_parent
             ON child.session_id = ?1
            AND child.parent_seq = doomed.value
            AND child.is_branch = 1"
    );
    let children: Vec<EventLink> = load(db, &sql, &[here.clone(), doomed.clone()])?;
    Ok(children
        .into_iter()
        .filter(|child| !parents.contains_key(&child.seq))
        .map(|link| ReparentedEvent {
            parent_seq: surviving(parents, link.parent_seq),
            link,
        })
        .collect())
}

/// After the deletion: whether a child follows its new parent directly is read
/// off what is left.
fn adopt(db: &dyn Database, here: &SqlValue, orphans: &[ReparentedEvent]) -> Result<()> {
    for orphan in orphans {
        db.run(
            "UPDATE cf_agents_events
                SET parent_seq = ?3,
                    parent_id = (SELECT parent.id
                                   FROM cf_agents_events AS parent
                                  WHERE parent.session_id = ?1
                                    AND parent.seq = ?3),
                    is_branch = EXISTS (SELECT 1
                                          FROM cf_agents_events AS between_them
                                         WHERE between_them.session_id = ?1
                                           AND between_them.seq > ?3
                                           AND between_them.seq < ?2)
              WHERE session_id = ?1
                AND seq = ?2",
            &[
                here.clone(),
                orphan.link.seq.into(),
                orphan.parent_seq.into(),
            ],
        )?;
    }
    Ok(())
}
