//! Deletes the old events of a session.
//!
//! An answer is deleted as a whole, when the newest of its events is old: so no call is left
//! without its result. An answer is the part of a run up to a text after which no call is open; a
//! younger answer that follows it in the same message does not protect it. The children of deleted
//! events join the nearest surviving ancestor, as after `deleteEvents`. A summary that covers a
//! deleted event is deleted with the event, because the summary repeats its content.
//!
//! The events are deleted page by page, and what happens to an event may depend on where a page
//! ends. So pages are the same, whatever capacity a step has left, and a dry run records what each
//! of them would have deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::work::{MAX_STEP_BYTES, MAX_STEP_DELETED, PageBounds, StepWork};
use crate::purge::erase_around;
use base::database::Database;
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use conversation::log::event_facts::find_first_id;
use conversation::log::old_events::{self, EventKind, OldEvent};
use conversation::log::queued;
use conversation::log::sessions::find_active_at;
use conversation::log::tip::get_tip;
use conversation::messages::derived::find_summaries;
use conversation::messages::tree::delete::delete_seqs;
use conversation::session::changes;
use conversation::session::last_turns::find_open_turn;
use store::erasing::ErasingDatabase;
use store::retention_progress::RetentionPosition;

/// A page of old events, and the event after them.
pub struct OldEvents {
    old: Vec<OldEvent>,
    next: Option<OldEvent>,
    /// Whether `next` is young, or there is none.
    is_last: bool,
}

/// The bounds of a page of old events.
const WHOLE_PAGE: PageBounds = PageBounds {
    events: MAX_STEP_DELETED,
    bytes: MAX_STEP_BYTES,
};

impl OldEvents {
    /// The events after `after_seq` that were written at `cutoff` or before, in their order.
    pub fn load(
        db: &dyn Database,
        session_id: &Id,
        after_seq: i64,
        cutoff: i64,
        bounds: &PageBounds,
        work: &mut StepWork,
    ) -> Result<Self> {
        let known = work.preview.deleted_after(after_seq);
        let most = bounds.events + 1;
        let mut rows = old_events::load_after(db, session_id, after_seq, &known, most)?;
        work.count_scanned(rows.len());
        for event in &mut rows {
            event.parent_seq = work.preview.parent(event.parent_seq);
        }
        let mut old = Vec::new();
        let mut bytes = 0;
        let mut rest = rows.into_iter().peekable();
        while let Some(event) = rest.peek() {
            let has_capacity = (old.len() as i64) < bounds.events && bytes < bounds.bytes;
            if event.written_at > cutoff || !has_capacity {
                break;
            }
            bytes += event.bytes;
            old.extend(rest.next());
        }
        let next = rest.next();
        Ok(Self {
            is_last: next.as_ref().is_none_or(|next| next.written_at > cutoff),
            old,
            next,
        })
    }

    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }

    pub fn count(&self) -> i64 {
        self.old.len() as i64
    }

    pub fn bytes(&self) -> i64 {
        self.old.iter().map(|event| event.bytes).sum()
    }

    pub fn seqs(&self) -> Vec<i64> {
        self.old.iter().map(|event| event.seq).collect()
    }

    /// The events of answers that continue after the page.
    fn find_retained(
        &self,
        db: &dyn Database,
        session_id: &Id,
        cutoff: i64,
        work: &StepWork,
    ) -> Result<RetainedEvents> {
        let mut retained = RetainedEvents::default();
        let (Some(first), Some(last)) = (self.old.first(), self.old.last()) else {
            return Ok(retained);
        };
        let later = old_events::load_branches_past(db, session_id, first.seq, last.seq)?;
        let by_seq: BTreeMap<i64, &OldEvent> =
            self.old.iter().map(|event| (event.seq, event)).collect();
        for event in later.iter().chain(self.next.as_ref()) {
            let parent_seq = work.preview.parent(event.parent_seq);
            let list = if event.written_at > cutoff {
                &mut retained.by_young
            } else {
                &mut retained.by_old
            };
            if event.is_run_member {
                list.extend(answer_above(&by_seq, parent_seq));
            }
        }
        Ok(retained)
    }
}

/// The events of a page that stay, because of what comes after the page.
#[derive(Default)]
struct RetainedEvents {
    /// They stay in this run: a young event belongs to their answer.
    by_young: BTreeSet<i64>,
    /// They are checked again with the rest of their answer.
    by_old: BTreeSet<i64>,
}

/// The events of the answer that continues below `seq`, as far as the page has them.
fn answer_above(by_seq: &BTreeMap<i64, &OldEvent>, seq: i64) -> Vec<i64> {
    let mut run = Vec::new();
    let mut seq = seq;
    while let Some(event) = by_seq.get(&seq).filter(|event| event.is_run_member) {
        run.push(*event);
        seq = event.parent_seq;
    }
    run.reverse();
    // The calls that have no result yet. `None`: they can't be read.
    let mut open = Some(BTreeSet::new());
    let mut begin = 0;
    for (index, event) in run.iter().enumerate() {
        match (&event.kind, &mut open) {
            (EventKind::Calls(Some(ids)), Some(open)) => {
                open.extend(ids.iter().map(String::as_str));
            }
            (EventKind::Calls(None), open) => *open = None,
            (EventKind::Result(Some(id)), Some(open)) => drop(open.remove(id.as_str())),
            (EventKind::Result(_) | EventKind::Calls(_), _) => {}
            (EventKind::Other, open) => {
                if open.as_ref().is_some_and(BTreeSet::is_empty) {
                    begin = index + 1;
                }
            }
        }
    }
    run.iter().skip(begin).map(|event| event.seq).collect()
}

/// Deletes a page of the session's old events. Returns whether no old event is left that can be
/// deleted.
pub fn delete_old(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    cutoff: i64,
    position: &mut RetentionPosition,
    work: &mut StepWork,
) -> Result<bool> {
    let capacity = work.event_capacity();
    let page = OldEvents::load(
        db,
        session_id,
        position.after_seq,
        cutoff,
        &WHOLE_PAGE,
        work,
    )?;
    let (Some(first), Some(last)) = (page.old.first(), page.old.last()) else {
        return Ok(true);
    };
    let (before_first, last_seq) = (first.seq - 1, last.seq);
    // A turn may answer an old message. What stays for it is deleted by a later run.
    if is_busy(db, session_id)? {
        return Ok(true);
    }
    if capacity
        .is_some_and(|capacity| page.count() > capacity.events || page.bytes() > capacity.bytes)
    {
        // The next step has capacity for the whole page.
        work.end();
        return Ok(false);
    }
    let RetainedEvents {
        by_young: mut retained,
        by_old,
    } = page.find_retained(db, session_id, cutoff, work)?;
    let mut next = match (page.is_last, by_old.first()) {
        // An answer that continues after the page is checked again with the next one.
        (false, Some(first)) => first - 1,
        (true, _) | (false, None) => last_seq,
    };
    let stay = |event: &&OldEvent| retained.contains(&event.seq) || by_old.contains(&event.seq);
    if next == before_first && page.old.iter().all(|event| stay(&event)) {
        // One answer is longer than a page. It is deleted in pieces.
        next = last_seq;
    } else {
        retained.extend(by_old);
    }
    let deleted = page
        .old
        .iter()
        .filter(|event| !retained.contains(&event.seq));
    let deleted: Vec<&OldEvent> = deleted.collect();
    deleted
        .iter()
        .for_each(|event| work.counts.events.add(event.written_at));
    let seqs: Vec<i64> = deleted.iter().map(|event| event.seq).collect();
    if work.is_dry {
        let parents = deleted.iter().map(|event| (event.seq, event.parent_seq));
        work.preview.delete(parents);
        for summary in find_summaries(db, session_id, &seqs.into_iter().collect())? {
            if work.preview.record_deleted_summary(summary.id) {
                work.counts.summaries.add(summary.created_at);
            }
        }
    } else {
        work.delete(
            deleted.len() as i64,
            deleted.iter().map(|event| event.bytes).sum(),
        );
        trim(db, host, session_id, &seqs, work)?;
    }
    position.after_seq = next;
    Ok(page.is_last)
}

/// Whether a turn runs or is queued in this session.
pub fn is_busy(db: &dyn Database, id: &Id) -> Result<bool> {
    Ok(queued::has_any(db, id)? || find_open_turn(db, id)?.is_some())
}

/// A clock that is stopped at the session's last write: a deletion by retention does not count as a
/// write.
struct StoppedClock<'a> {
    host: &'a dyn Host,
    at_ms: i64,
}

impl Host for StoppedClock<'_> {
    fn now_ms(&self) -> i64 {
        self.at_ms
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.host.fill_random(bytes);
    }

    fn memory_bytes(&self) -> usize {
        self.host.memory_bytes()
    }
}

/// Deletes these events and the summaries that cover them. Part of a transaction.
pub fn trim(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    seqs: &[i64],
    work: &mut StepWork,
) -> Result<()> {
    if seqs.is_empty() {
        return Ok(());
    }
    let clock = StoppedClock {
        host,
        at_ms: find_active_at(db, session_id)?,
    };
    let tip = get_tip(db, session_id)?;
    for summary in erase_around(db, &clock, session_id, &seqs.iter().copied().collect())? {
        work.counts.summaries.add(summary.created_at);
    }
    delete_seqs(db, &clock, session_id, &tip, seqs)?;
    let left = find_first_id(db, session_id)?;
    changes::begin_again(db, &clock, session_id, tip.last_seq(), left.as_deref())?;
    work.change(session_id);
    Ok(())
}
