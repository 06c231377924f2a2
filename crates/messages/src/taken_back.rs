//! The copies that are taken back of events whose text is erased: the summaries that covered the
//! events, and the reports of turns that hold their messages. The erasure's transaction holds all
//! of it.

use std::collections::{BTreeMap, BTreeSet};

use super::delete::tell_joined;
use super::runs::{RunCache, RunPosition};
use super::tree::overlay_writes;
use super::tree::overlays::MAX_OVERLAYS;
use super::tree::path::{PathSegment, is_on_path, load_segments};
use base::columns::load;
use base::database::{Database, SqlValue, atomically, find_row};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use log::tip::get_tip;
use store::changes::{self, ChangeType};

/// Deletes an overlay, so that the events it hid are read again. `false`: there is no such
/// overlay.
pub fn delete_overlay(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    id: &Id,
) -> Result<bool> {
    atomically(db, || {
        let last_seq = get_tip(db, session_id)?.last_seq();
        let Some(range) = overlay_writes::delete(db, session_id, id)? else {
            return Ok(false);
        };
        record_overlay(db, host, session_id, last_seq, id)?;
        tell_joined(db, host, session_id, last_seq, &[range])?;
        Ok(true)
    })
}

/// Tells the feed of an overlay that was added or deleted.
pub fn record_overlay(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    id: &Id,
) -> Result<()> {
    let changed = [Some(id.as_str())];
    let kind = ChangeType::Compaction;
    changes::record(db, host, session_id, last_seq, kind, &changed)
}

/// Takes back what was made of these events: the reports first, because a summary that is
/// taken back joins messages that it parted.
pub fn take_back(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<()> {
    erase_reports(db, session_id, seqs)?;
    take_back_summaries(db, host, session_id, seqs)
}

/// Deletes the summaries that covered one of these events. Their other events read as before,
/// and may be compacted again.
fn take_back_summaries(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<()> {
    let sql = format!(
        "SELECT id, from_seq, to_seq
           FROM cf_agents_compactions
          WHERE session_id = ?1
            AND EXISTS (SELECT 1
                          FROM json_each(?2)
                         WHERE value BETWEEN from_seq AND to_seq)
          LIMIT {MAX_OVERLAYS}"
    );
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(seqs)?),
    ];
    let mut paths: BTreeMap<i64, Vec<PathSegment>> = BTreeMap::new();
    for (id, from_seq, to_seq) in load::<(String, i64, i64)>(db, &sql, &params)? {
        let path = match paths.entry(to_seq) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                new.insert(load_segments(db, session_id, to_seq)?)
            }
        };
        let mut within = seqs.range(from_seq..=to_seq);
        if within.any(|seq| is_on_path(path, *seq)) {
            let id = Id::parse(id).map_err(Error::storage)?;
            delete_overlay(db, host, session_id, &id)?;
        }
    }
    Ok(())
}

/// Deletes the reports of turns (`onTurnEnd`) that hold messages of these events: an erased text
/// is told nobody any more.
fn erase_reports(db: &dyn Database, session_id: &Id, seqs: &BTreeSet<i64>) -> Result<()> {
    let session = SqlValue::from(session_id.as_str());
    let sql = "SELECT 1 FROM cf_agents_callbacks WHERE session_id = ?1 LIMIT 1";
    if find_row(db, sql, std::slice::from_ref(&session))?.is_none() {
        return Ok(());
    }
    let mut runs = RunCache::of(db, session_id);
    let mut messages = BTreeSet::new();
    for seq in seqs {
        if let RunPosition::Run(start) = runs.find(*seq)? {
            messages.insert(start.seq);
        }
    }
    // An event that is in no run is its own message.
    messages.extend(seqs);
    db.run(
        "DELETE FROM cf_agents_callbacks
          WHERE session_id = ?1
            AND message_id IN (SELECT e.id
                                 FROM cf_agents_events AS e
                                WHERE e.session_id = ?1
                                  AND e.seq IN (SELECT value FROM json_each(?2)))",
        &[session, SqlValue::Text(json::encode(&messages)?)],
    )
}
