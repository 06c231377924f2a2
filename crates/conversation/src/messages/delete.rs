//! Deletes events and messages. The feed records everything that reads differently afterward: each
//! deleted event, each message whose run lost or gained events, and each overlay whose edges moved.
//!
//! The feed omits the new parents of surviving events: they follow from the deletes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::run::find_run;
use super::runs::{RunCache, RunPosition};
use crate::log::boundary::ChangedBoundary;
use crate::log::find::find_seqs;
use crate::log::tip::get_tip;
use crate::messages::tree::children::load_child_links;
use crate::messages::tree::delete::{DeletionOutcome, ReparentedEvent, delete_seqs};
use crate::messages::tree::path::surviving;
use crate::session::changes::{self, ChangeType};
use base::database::{Database, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;

/// Deletes those of `ids` that the session has; returns how many.
pub fn delete_events(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<usize> {
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let deleted = find_seqs(db, session_id, ids.iter())?;
        let mut seqs: Vec<i64> = deleted.into_values().collect();
        seqs.sort();
        let outcome = delete_seqs(db, host, session_id, &tip, &seqs)?;
        record_deleted(db, host, session_id, tip.last_seq(), &outcome)?;
        Ok(outcome.deleted.len())
    })
}

/// Deletes whole messages; returns how many existed.
pub fn delete_messages(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    ids: &[Id],
) -> Result<usize> {
    atomically(db, || {
        FoundMessages::find(db, session_id, ids)?.delete(db, host, session_id)
    })
}

/// Messages of a session, with all the events that they have now. A deletion means these events,
/// whatever joins or splits runs afterward.
#[derive(Default)]
pub struct FoundMessages {
    count: usize,
    /// In the order of the requested messages.
    pub seqs: Vec<i64>,
}

impl FoundMessages {
    /// Finds those of `ids` that are messages.
    pub fn find(db: &dyn Database, session_id: &Id, ids: &[Id]) -> Result<Self> {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        for id in ids {
            let Some(run) = find_run(db, session_id, id)? else {
                continue;
            };
            if run.seqs().next().is_some_and(|first| seen.insert(first)) {
                found.count += 1;
                found.seqs.extend(run.seqs());
            }
        }
        Ok(found)
    }

    /// Deletes the messages; returns how many they are. Part of a transaction.
    pub fn delete(&self, db: &dyn Database, host: &dyn Host, session_id: &Id) -> Result<usize> {
        let tip = get_tip(db, session_id)?;
        let deleted = delete_seqs(db, host, session_id, &tip, &self.seqs)?;
        record_deleted(db, host, session_id, tip.last_seq(), &deleted)?;
        Ok(self.count)
    }
}

pub fn record_updated(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    ids: &[&str],
) -> Result<()> {
    let ids: Vec<Option<&str>> = ids.iter().copied().map(Some).collect();
    changes::record(db, host, session_id, last_seq, ChangeType::Update, &ids)
}

/// Records a deletion in the feed, in the deletion's transaction.
pub fn record_deleted(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    outcome: &DeletionOutcome,
) -> Result<()> {
    let deleted: Vec<Option<&str>> = outcome
        .deleted
        .iter()
        .map(|deleted| Some(&*deleted.link.id))
        .collect();
    changes::record(db, host, session_id, last_seq, ChangeType::Delete, &deleted)?;
    let changed = find_changed(db, session_id, outcome)?;
    let changed: Vec<&str> = changed.values().map(String::as_str).collect();
    record_updated(db, host, session_id, last_seq, &changed)?;
    let overlays: Vec<Option<&str>> = outcome.overlays.iter().map(|id| Some(&**id)).collect();
    changes::record(
        db,
        host,
        session_id,
        last_seq,
        ChangeType::Compaction,
        &overlays,
    )
}

/// Records that runs were split or joined at these events: each has become a message or is none any
/// more, and the message above has more or fewer events.
pub fn record_boundaries(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    last_seq: i64,
    changed: &[ChangedBoundary],
) -> Result<()> {
    let mut runs = RunCache::of(db, session_id);
    let mut updated = BTreeMap::new();
    for event in changed {
        updated.insert(event.seq, event.id.clone());
        if let RunPosition::Run(start) = runs.find(event.parent_seq)? {
            updated.insert(start.seq, start.id);
        }
    }
    let updated: Vec<&str> = updated.values().map(String::as_str).collect();
    record_updated(db, host, session_id, last_seq, &updated)
}

/// The messages that read differently now, by the `seq` of the event that gives them their id: runs
/// that lost or gained events, and events with which a run begins now or began before.
fn find_changed(
    db: &dyn Database,
    session_id: &Id,
    outcome: &DeletionOutcome,
) -> Result<BTreeMap<i64, String>> {
    let mut changed = Vec::new();
    let mut runs = RunCache::of(db, session_id);
    let was_in_run: HashMap<i64, bool> = outcome
        .deleted
        .iter()
        .map(|deleted| (deleted.link.seq, deleted.link.is_run_member))
        .collect();
    let moved: HashMap<i64, &ReparentedEvent> = outcome
        .moved
        .iter()
        .map(|moved| (moved.link.seq, moved))
        .collect();
    let parents = outcome.parents();
    let mut survivors: Vec<i64> = parents
        .keys()
        .map(|seq| surviving(&parents, *seq))
        .collect();
    survivors.sort();
    survivors.dedup();
    for above_seq in survivors {
        let above = runs.find(above_seq)?;
        let takes_members = outcome
            .moved
            .iter()
            .any(|moved| moved.parent_seq == above_seq && moved.link.is_run_member);
        // Below an event that is in no run, the other children begin as before.
        if above == RunPosition::Single && !takes_members {
            continue;
        }
        let lost = outcome
            .deleted
            .iter()
            .filter(|deleted| deleted.link.parent_seq == above_seq);
        let children = load_child_links(db, session_id, above_seq)?;
        let remaining = children
            .iter()
            .filter(|child| !moved.contains_key(&child.seq));
        let had_branches = remaining.count() + lost.count() > 1;
        let has_branches = children.len() > 1;
        for child in children.into_iter().filter(|child| child.is_run_member) {
            let begins = above == RunPosition::Single || child.splits_run;
            let is_reported = match moved.get(&child.seq) {
                // The feed may not have reported yet that a branch split the run here.
                Some(ReparentedEvent { link, .. }) => {
                    let was_inside = was_in_run.get(&link.parent_seq).copied().unwrap_or(false);
                    link.splits_run || begins == was_inside
                }
                // This depends on the other children that belong to a run, and they may have
                // changed.
                None => above != RunPosition::Single && (had_branches || has_branches),
            };
            if is_reported {
                changed.push((child.seq, child.id));
            }
            if let (true, RunPosition::Run(start)) = (is_reported, &above) {
                changed.push((start.seq, start.id.clone()));
            }
        }
    }
    for deleted in outcome
        .deleted
        .iter()
        .filter(|deleted| deleted.link.is_run_member)
    {
        if let RunPosition::Run(start) = runs.find(surviving(&parents, deleted.link.seq))? {
            changed.push((start.seq, start.id));
        }
    }
    Ok(changed.into_iter().collect())
}
