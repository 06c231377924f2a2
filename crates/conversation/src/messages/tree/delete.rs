//! Deletes events without breaking the tree. A deleted event's children are attached to its
//! nearest surviving ancestor. The deleted event's `seq` is never reused.

use crate::messages::tree::path::surviving;
use base::json;
use std::collections::{BTreeSet, HashMap};

use super::overlay_writes::splice;
use crate::index;
use crate::log::boundary;
use crate::log::media;
use crate::log::row::EventLink;
use crate::log::sessions::find_stamp;
use crate::log::slices::delete_slices;
use crate::log::tip::LogTip;
use crate::log::totals::{PathEnd, path_end};
use crate::session::last_turns;
use crate::tables::EVENTS;
use base::columns::load;
use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::row;

/// The events that a deletion removed, and the events and overlays that it moved.
#[derive(Default)]
pub struct DeletionOutcome {
    /// The deleted events, in the order of the request.
    pub deleted: Vec<DeletedEvent>,
    /// Surviving children of deleted events, with their new parents.
    pub moved: Vec<ReparentedEvent>,
    /// Overlays that were deleted or whose range changed.
    pub overlays: Vec<String>,
}

row! {
    /// An event `e` that was deleted.
    pub struct DeletedEvent {
        pub link: EventLink = EventLink::COLUMNS,
        /// Positions where media was cut out of the event.
        media: Option<String> = "e.media",
        path_tokens: Option<i64> = "e.path_tokens",
    }
}

/// An event whose parent was deleted.
pub struct ReparentedEvent {
    /// The event's position before the deletion.
    pub link: EventLink,
    /// The new parent; 0: the event is now a root.
    pub parent_seq: i64,
}

impl DeletionOutcome {
    /// The parent of each deleted event, for [`surviving`].
    pub fn parents(&self) -> HashMap<i64, i64> {
        self.deleted
            .iter()
            .map(|deleted| (deleted.link.seq, deleted.link.parent_seq))
            .collect()
    }
}

/// Deletes these events and attaches their children to the nearest survivors. Must run in a
/// transaction that records the returned outcome in the change feed.
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
    let written_at = find_stamp(db, host, session_id)?;
    last_turns::fold_ended(db, session_id)?;
    let list = SqlValue::Text(json::encode(&seqs)?);
    let session_param = SqlValue::from(session_id.as_str());

    let mut outcome = DeletionOutcome {
        deleted: load_deleted(db, &session_param, &list)?,
        ..DeletionOutcome::default()
    };
    let parents = outcome.parents();
    outcome.moved = load_orphans(db, &session_param, &list, &parents)?;
    let uses: Vec<(i64, &str)> = outcome
        .deleted
        .iter()
        .filter_map(|deleted| Some((deleted.link.seq, deleted.media.as_deref()?)))
        .collect();
    Delete::from(
        EVENTS,
        "session_id = ?1
         AND seq IN (SELECT value FROM json_each(?2))",
        &[session_param.clone(), list],
    )
    .run(db)?;
    delete_slices(db, session_id, seqs)?;
    media::forget(db, session_id, &uses, &[])?;
    if let Some(index) = index::find_index(db, session_id.as_str())? {
        index::remove(db, &index, seqs)?;
    }
    adopt(db, &session_param, &outcome)?;
    outcome.overlays = splice(db, session_id, &parents)?;
    // Only below the survivors do events have different siblings and summaries different
    // ends.
    let survivors = survivors(&parents);
    let above = survivors.iter().map(|(_, above_seq)| *above_seq);
    let moved = outcome.moved.iter().map(|moved| moved.link.seq);
    boundary::update_boundaries(db, session_id, above, moved)?;

    // If the chosen leaf is deleted, its nearest surviving ancestor becomes the leaf. An
    // append overrides an earlier choice permanently, even if the appended event is
    // deleted.
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
            session_param,
            tip.newest_seq.into(),
            SqlValue::Text(json::encode(&survivors)?),
            written_at.into(),
        ],
    )?;
    Ok(outcome)
}

fn load_deleted(
    db: &dyn Database,
    session_param: &SqlValue,
    seqs: &SqlValue,
) -> Result<Vec<DeletedEvent>> {
    let sql = format!(
        "SELECT {}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = doomed.value",
        DeletedEvent::COLUMNS
    );
    load(db, &sql, &[session_param.clone(), seqs.clone()])
}

/// Each deleted event with its nearest surviving ancestor (0: none).
fn survivors(parents: &HashMap<i64, i64>) -> Vec<(i64, i64)> {
    parents
        .keys()
        .map(|seq| (*seq, surviving(parents, *seq)))
        .collect()
}

/// Surviving children of the deleted events, each with its new parent. The children are the
/// next rows and rows of the branch index. The SQL names that index, because the planner
/// would otherwise scan the log.
fn load_orphans(
    db: &dyn Database,
    session_param: &SqlValue,
    seqs: &SqlValue,
    parents: &HashMap<i64, i64>,
) -> Result<Vec<ReparentedEvent>> {
    let columns = EventLink::COLUMNS;
    let sql = format!(
        "SELECT {columns}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = (SELECT min(seq)
                           FROM cf_agents_events
                          WHERE session_id = ?1
                            AND seq > doomed.value)
            AND e.parent_seq = doomed.value
            AND e.is_branch = 0
         UNION ALL
         SELECT {columns}
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS e INDEXED BY cf_agents_events_by_parent
             ON e.session_id = ?1
            AND e.parent_seq = doomed.value
            AND e.is_branch = 1"
    );
    let children: Vec<EventLink> = load(db, &sql, &[session_param.clone(), seqs.clone()])?;
    Ok(children
        .into_iter()
        .filter(|child| !parents.contains_key(&child.seq))
        .map(|link| ReparentedEvent {
            parent_seq: surviving(parents, link.parent_seq),
            link,
        })
        .collect())
}

/// Sets the new parents. Runs after the deletion, because the remaining rows show whether a
/// child directly follows its new parent.
fn adopt(db: &dyn Database, session_param: &SqlValue, outcome: &DeletionOutcome) -> Result<()> {
    let parents = load_new_parents(db, session_param, &outcome.moved)?;
    let deleted: HashMap<i64, Option<i64>> = outcome
        .deleted
        .iter()
        .map(|deleted| (deleted.link.seq, deleted.path_tokens))
        .collect();
    for orphan in &outcome.moved {
        let link = &orphan.link;
        let parent = parents.iter().find(|(_, end)| end.seq == orphan.parent_seq);
        let end = parent.map_or(PathEnd::NONE, |(_, end)| *end);
        let starts = end.ends_message(link.is_run_member, link.splits_run);
        let messages = end.totals.messages.map(|sum| sum + i64::from(starts));
        let before = deleted.get(&link.parent_seq).copied().flatten();
        let fewer = before
            .zip(end.totals.tokens)
            .map(|(before, now)| before - now);
        db.run(
            "UPDATE cf_agents_events
                SET parent_seq = ?3,
                    parent_id = ?4,
                    is_branch = EXISTS (SELECT 1
                                          FROM cf_agents_events AS between_them
                                         WHERE between_them.session_id = ?1
                                           AND between_them.seq > ?3
                                           AND between_them.seq < ?2),
                    more_messages = coalesce(?5 - path_messages, 0),
                    more_tokens = iif(path_tokens IS NULL, 0, coalesce(more_tokens - ?6, 0))
              WHERE session_id = ?1
                AND seq = ?2",
            &[
                session_param.clone(),
                link.seq.into(),
                orphan.parent_seq.into(),
                parent.map(|(id, _)| id.as_str()).into(),
                messages.into(),
                fewer.into(),
            ],
        )?;
    }
    Ok(())
}

/// The events that orphans now follow, each with its id.
fn load_new_parents(
    db: &dyn Database,
    session_param: &SqlValue,
    orphans: &[ReparentedEvent],
) -> Result<Vec<(String, PathEnd)>> {
    let seqs: BTreeSet<i64> = orphans.iter().map(|orphan| orphan.parent_seq).collect();
    let seqs: Vec<i64> = seqs.into_iter().filter(|seq| *seq != 0).collect();
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT e.id, {}
           FROM json_each(?2) AS wanted
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = wanted.value",
        path_end!("e")
    );
    let list = SqlValue::Text(json::encode(&seqs)?);
    load(db, &sql, &[session_param.clone(), list])
}
