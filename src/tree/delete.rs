//! Deleting events: what is left keeps hanging together. A deleted event's
//! children join its nearest surviving ancestor, and its `seq` is never given
//! again.

use std::collections::HashMap;

use serde_json::json;

use super::overlays::splice;
use crate::changes::{self, ChangeType};
use crate::database::{Database, Value, atomically};
use crate::error::Result;
use crate::host::Host;
use crate::ids::Id;
use crate::log::find::find_seqs;
use crate::log::media;
use crate::log::slices::delete_slices;
use crate::log::tip::{Tip, get_tip};
use crate::search::index;

/// Deletes those of `ids` that are in the session; gives their number.
pub fn delete_events(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<usize> {
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let doomed = find_seqs(db, session_id, ids.iter())?;
        let mut doomed: Vec<(i64, String)> =
            doomed.into_iter().map(|(id, seq)| (seq, id)).collect();
        doomed.sort_unstable();
        let (seqs, ids): (Vec<i64>, Vec<String>) = doomed.into_iter().unzip();
        let changed: Vec<Option<&str>> = ids.iter().map(|id| Some(id.as_str())).collect();
        changes::record(
            db,
            host,
            session_id,
            tip.last_seq(),
            ChangeType::Delete,
            &changed,
        )?;
        delete_seqs(db, host, session_id, &tip, &seqs)?;
        Ok(seqs.len())
    })
}

/// Takes these events out of the tree and joins what hung on them. Part of a
/// transaction that tells the feed.
pub fn delete_seqs(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    tip: &Tip,
    seqs: &[i64],
) -> Result<()> {
    if seqs.is_empty() {
        return Ok(());
    }
    let list = Value::Text(json!(seqs).to_string());
    let here = Value::from(session_id.as_str());

    let doomed = load_doomed(db, &here, &list)?;
    let parents: HashMap<i64, i64> = doomed
        .iter()
        .map(|doomed| (doomed.seq, doomed.parent_seq))
        .collect();
    let uses: Vec<(i64, &str)> = doomed
        .iter()
        .filter_map(|doomed| Some((doomed.seq, doomed.media.as_deref()?)))
        .collect();
    let orphans = load_orphans(db, &here, &list, &parents)?;
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
    adopt(db, &here, &orphans)?;
    splice(db, session_id, &parents)?;

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
            Value::Text(json!(survivors(&parents)).to_string()),
            host.now_ms().into(),
        ],
    )
}

/// An event that is to go.
struct Doomed {
    seq: i64,
    parent_seq: i64,
    /// Where media was cut out of it.
    media: Option<String>,
}

fn load_doomed(db: &dyn Database, here: &Value, doomed: &Value) -> Result<Vec<Doomed>> {
    let rows = db.rows(
        "SELECT e.seq, e.parent_seq, e.media
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = ?1
            AND e.seq = doomed.value",
        &[here.clone(), doomed.clone()],
    )?;
    rows.iter()
        .map(|row| {
            Ok(Doomed {
                seq: row.integer(0)?,
                parent_seq: row.integer(1)?,
                media: row.find_text(2).map(str::to_owned),
            })
        })
        .collect()
}

/// Each doomed event with its nearest surviving ancestor (0: none).
fn survivors(parents: &HashMap<i64, i64>) -> Vec<(i64, i64)> {
    parents
        .keys()
        .map(|seq| (*seq, surviving(parents, *seq)))
        .collect()
}

/// The nearest ancestor that is left, or the event itself (0: none).
pub fn surviving(parents: &HashMap<i64, i64>, mut seq: i64) -> i64 {
    // Ends: a parent's number is always below its child's.
    while let Some(parent) = parents.get(&seq) {
        seq = *parent;
    }
    seq
}

/// Surviving children of the doomed: those right after their parent, and those
/// in the branch index. Each with the ancestor that it joins.
fn load_orphans(
    db: &dyn Database,
    here: &Value,
    doomed: &Value,
    parents: &HashMap<i64, i64>,
) -> Result<Vec<(i64, i64)>> {
    let rows = db.rows(
        "SELECT child.seq, child.parent_seq
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
         SELECT child.seq, child.parent_seq
           FROM json_each(?2) AS doomed
          CROSS JOIN cf_agents_events AS child
             ON child.session_id = ?1
            AND child.parent_seq = doomed.value
            AND child.is_branch = 1",
        &[here.clone(), doomed.clone()],
    )?;
    let mut orphans = Vec::with_capacity(rows.len());
    for row in &rows {
        let (seq, parent) = (row.integer(0)?, row.integer(1)?);
        if !parents.contains_key(&seq) {
            orphans.push((seq, surviving(parents, parent)));
        }
    }
    Ok(orphans)
}

/// After the deletion: whether a child follows its new parent directly is read
/// off what is left.
fn adopt(db: &dyn Database, here: &Value, orphans: &[(i64, i64)]) -> Result<()> {
    for (seq, parent) in orphans {
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
            &[here.clone(), (*seq).into(), (*parent).into()],
        )?;
    }
    Ok(())
}
