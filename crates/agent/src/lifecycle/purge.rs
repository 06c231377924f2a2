//! Purging events, messages and sessions: the deletions of these operations, in one
//! transaction that leaves no text behind. Beside the log, a purge takes back the
//! summaries that covered its events, and what was kept of the turns that wrote them.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::columns::load;
use crate::base::database::{Database, SqlValue, atomically, find_row};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json;
use crate::context::compaction::by_hand::delete_compaction;
use crate::lifecycle::delete::delete_session;
use crate::log::find::find_seqs;
use crate::memory::proposals::erase::erase_of_events;
use crate::messages::delete::{delete_events, delete_messages};
use crate::messages::run::find_run;
use crate::messages::runs::{RunCache, RunPosition};
use crate::messages::tree::overlays::MAX_OVERLAYS;
use crate::messages::tree::path::{PathSegment, is_on_path, load_segments};
use crate::store::erased::Erasure;
use crate::store::erasing::{ENTRY_INDEX, EVENT_INDEX, ErasingDatabase};
use crate::store::{last_turns, staging};

/// Erases those of `ids` that the session has; returns how many, and the counts.
pub fn purge_events(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<(usize, Erasure)> {
    erase(db, |db| {
        let seqs = find_seqs(db, session_id, ids.iter())?;
        erase_around(db, host, session_id, seqs.into_values().collect())?;
        delete_events(db, host, session_id, ids)
    })
}

/// Erases whole messages; returns how many existed, and the counts.
pub fn purge_messages(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<(usize, Erasure)> {
    erase(db, |db| {
        let mut seqs = BTreeSet::new();
        for id in ids {
            if let Some(run) = find_run(db, session_id, id)? {
                seqs.extend(run.seqs());
            }
        }
        erase_around(db, host, session_id, seqs)?;
        delete_messages(db, host, session_id, ids)
    })
}

/// Erases a session and all that belongs to it, and what an import has begun to write
/// under its id; `false`: there is no such session.
pub fn purge_session(db: &dyn Database, id: &Id) -> Result<(bool, Erasure)> {
    erase(db, |db| {
        db.merge_index(ENTRY_INDEX);
        let is_there = delete_session(db, id)?;
        if !is_there {
            staging::forget(db, id)?;
        }
        Ok(is_there)
    })
}

fn erase<T>(
    db: &dyn Database,
    delete: impl FnOnce(&ErasingDatabase<'_>) -> Result<T>,
) -> Result<(T, Erasure)> {
    atomically(db, || {
        let db = ErasingDatabase::of_purge(db)?;
        db.merge_index(EVENT_INDEX);
        let deleted = delete(&db)?;
        Ok((deleted, db.finish()?))
    })
}

/// Erases what other rows say of these events, before the events are deleted.
pub fn erase_around(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    seqs: BTreeSet<i64>,
) -> Result<()> {
    if seqs.is_empty() {
        return Ok(());
    }
    take_back_summaries(db, host, session_id, &seqs)?;
    erase_reports(db, session_id, &seqs)?;
    erase_of_events(db, session_id, &seqs)?;
    let turns = last_turns::overwrite_over(db, session_id)?;
    db.touch("cf_agents_last_turns");
    db.count(|erased| erased.turns += turns);
    Ok(())
}

/// Deletes the summaries that covered one of these events. Their other events read as
/// before, and may be compacted again.
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
            delete_compaction(db, host, session_id, &id)?;
        }
    }
    Ok(())
}

/// Deletes the reports of turns (`onTurnEnd`) that hold messages of these events: an
/// erased text is told nobody any more.
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
            messages.insert(start.id);
        }
    }
    db.run(
        "DELETE FROM cf_agents_callbacks
          WHERE session_id = ?1
            AND message_id IN (SELECT value FROM json_each(?2))",
        &[session, SqlValue::Text(json::encode(&messages)?)],
    )
}
