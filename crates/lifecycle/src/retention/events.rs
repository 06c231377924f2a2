//! The old events of a session, and how they go.
//!
//! A message goes as a whole, when the newest of its events is old: so no call is left
//! without its result. The children of deleted events join the nearest surviving ancestor,
//! as after `deleteEvents`. A summary that covers a deleted event goes with the event,
//! because the summary repeats what the event said.

use std::collections::{BTreeMap, BTreeSet};

use super::work::StepWork;
use crate::purge::erase_around;
use base::columns::{FromRow, find_value, load, load_values};
use base::database::{Database, Row};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use log::event::IS_RUN_MEMBER;
use log::row::ROW_BYTES;
use log::sessions::ACTIVE_AT;
use log::tip::get_tip;
use messages::taken_back::find_summaries;
use messages::tree::delete::delete_seqs;
use messages::tree::overlays::MAX_OVERLAYS;
use store::changes;
use store::erasing::ErasingDatabase;
use store::last_turns::find_open_turn;
use store::retention_progress::RunPlace;

/// An event at the beginning of a log, without its texts.
struct OldEvent {
    seq: i64,
    parent_seq: i64,
    written_at: i64,
    bytes: i64,
    is_run_member: bool,
    /// Whether the parent is the row right before this one.
    follows: bool,
}

impl OldEvent {
    /// The columns of an event `e`.
    fn columns() -> String {
        format!("e.seq, e.parent_seq, e.written_at, {ROW_BYTES}, {IS_RUN_MEMBER}, e.is_branch = 0")
    }
}

impl FromRow<'_> for OldEvent {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            seq: row.integer(0)?,
            parent_seq: row.integer(1)?,
            written_at: row.integer(2)?,
            bytes: row.integer(3)?,
            is_run_member: row.integer(4)? == 1,
            follows: row.integer(5)? == 1,
        })
    }
}

/// A page of old events, and the event after them.
pub struct OldEvents {
    old: Vec<OldEvent>,
    next: Option<OldEvent>,
    /// Whether `next` is young, or there is none.
    is_last: bool,
    /// Whether the step had all its room for the page.
    is_full: bool,
}

impl OldEvents {
    /// The events after `after_seq` that were written at `cutoff` or before, in their order,
    /// as many as the step may delete.
    pub fn load(
        db: &dyn Database,
        session_id: &Id,
        after_seq: i64,
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<Self> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_events AS e
              WHERE e.session_id = +?1
                AND e.seq > +?2
              ORDER BY e.seq
              LIMIT ?3 + 0",
            OldEvent::columns()
        );
        let is_full = work.is_new();
        let limit = work.page();
        let params = [
            session_id.as_str().into(),
            after_seq.into(),
            (limit + 1).into(),
        ];
        let rows: Vec<OldEvent> = load(db, &sql, &params)?;
        work.look(rows.len());
        let mut old = Vec::new();
        let mut bytes = 0;
        let mut rest = rows.into_iter().peekable();
        while let Some(event) = rest.peek() {
            let has_room = (old.len() as i64) < limit && (bytes < work.bytes_left() || work.is_dry);
            if event.written_at > cutoff || !has_room {
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
            is_full,
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

    /// The events of messages that go on after the page.
    fn unfinished(&self, db: &dyn Database, session_id: &Id) -> Result<BTreeSet<i64>> {
        let by_seq: BTreeMap<i64, &OldEvent> =
            self.old.iter().map(|event| (event.seq, event)).collect();
        let (Some(first), Some(last)) = (self.old.first(), self.old.last()) else {
            return Ok(BTreeSet::new());
        };
        let sql = format!(
            "SELECT e.parent_seq
               FROM cf_agents_events AS e INDEXED BY cf_agents_events_by_parent
              WHERE e.session_id = +?1
                AND e.is_branch = 1
                AND e.parent_seq BETWEEN ?2 AND ?3
                AND e.seq > ?3
                AND {IS_RUN_MEMBER}"
        );
        let mut ends: Vec<i64> = load_values(
            db,
            &sql,
            &[
                session_id.as_str().into(),
                first.seq.into(),
                last.seq.into(),
            ],
        )?;
        let goes_on = |next: &&OldEvent| next.follows && next.is_run_member;
        ends.extend(
            self.next
                .as_ref()
                .filter(goes_on)
                .map(|next| next.parent_seq),
        );
        let mut unfinished = BTreeSet::new();
        for mut seq in ends {
            while let Some(event) = by_seq.get(&seq).filter(|event| event.is_run_member) {
                if !unfinished.insert(seq) {
                    break;
                }
                seq = event.parent_seq;
            }
        }
        Ok(unfinished)
    }
}

/// Deletes a page of the session's old events. Returns whether no old event is left that can
/// go.
pub fn delete_old(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    cutoff: i64,
    place: &mut RunPlace,
    work: &mut StepWork,
) -> Result<bool> {
    let page = OldEvents::load(db, session_id, place.after_seq, cutoff, work)?;
    let Some(last_seq) = page.old.last().map(|last| last.seq) else {
        return Ok(true);
    };
    // A turn may answer an old message. What stays for it goes with a later run.
    if is_busy(db, session_id)? {
        return Ok(true);
    }
    if work.is_dry {
        page.old
            .iter()
            .for_each(|event| work.gone.events.add(event.written_at));
        if page.is_last {
            let kept = page.unfinished(db, session_id)?;
            work.gone.events.count -= kept.len() as i64;
            count_summaries(db, session_id, &page.seqs(), &kept, place.after_seq, work)?;
        }
        place.after_seq = last_seq;
        return Ok(page.is_last);
    }
    let mut kept = page.unfinished(db, session_id)?;
    if !page.is_last && kept.len() == page.old.len() {
        if !page.is_full {
            // Little room was left in this step: the next one looks at the message again.
            work.end();
            return Ok(false);
        }
        // One message is longer than a step. It goes in pieces.
        kept.clear();
    }
    let gone = page.old.iter().filter(|event| !kept.contains(&event.seq));
    let gone: Vec<&OldEvent> = gone.collect();
    if !gone.is_empty() {
        gone.iter()
            .for_each(|event| work.gone.events.add(event.written_at));
        work.delete(
            gone.len() as i64,
            gone.iter().map(|event| event.bytes).sum(),
        );
        let seqs: Vec<i64> = gone.iter().map(|event| event.seq).collect();
        trim(db, host, session_id, &seqs, work)?;
    }
    // A message that goes on after the page is looked at again with the next one.
    place.after_seq = match (page.is_last, kept.first()) {
        (false, Some(first)) => first - 1,
        (true, _) | (false, None) => last_seq,
    };
    Ok(page.is_last)
}

/// Whether a turn runs or waits here.
pub fn is_busy(db: &dyn Database, id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_waiting WHERE session_id = ?1 LIMIT 1";
    let waits: Option<i64> = find_value(db, sql, &[id.as_str().into()])?;
    Ok(waits.is_some() || find_open_turn(db, id)?.is_some())
}

/// A clock that stands where the session was last written to: what retention deletes is not
/// a write.
struct StandingClock<'a> {
    host: &'a dyn Host,
    at_ms: i64,
}

impl Host for StandingClock<'_> {
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
    let here = session_id.as_str();
    let sql = format!("SELECT {ACTIVE_AT} FROM cf_agents_sessions AS s WHERE s.id = +?1");
    let clock = StandingClock {
        host,
        at_ms: find_value(db, &sql, &[here.into()])?.unwrap_or(0),
    };
    let tip = get_tip(db, session_id)?;
    for summary in erase_around(db, &clock, session_id, &seqs.iter().copied().collect())? {
        work.gone.summaries.add(summary.created_at);
    }
    delete_seqs(db, &clock, session_id, &tip, seqs)?;
    let sql = "SELECT id FROM cf_agents_events WHERE session_id = +?1 ORDER BY seq LIMIT 1";
    let left: Option<String> = find_value(db, sql, &[here.into()])?;
    changes::begin_again(db, &clock, session_id, tip.last_seq(), left.as_deref())?;
    work.change(session_id);
    Ok(())
}

/// Counts the summaries that a run would take back. `old`: the last page, of which the events
/// `kept` stay. All events up to `after_seq` go.
fn count_summaries(
    db: &dyn Database,
    session_id: &Id,
    old: &[i64],
    kept: &BTreeSet<i64>,
    after_seq: i64,
    work: &mut StepWork,
) -> Result<()> {
    let gone: BTreeSet<i64> = old
        .iter()
        .copied()
        .filter(|seq| !kept.contains(seq))
        .collect();
    let sql = format!(
        "SELECT id, created_at
           FROM cf_agents_compactions
          WHERE session_id = ?1
            AND from_seq <= ?2
          LIMIT {MAX_OVERLAYS}"
    );
    let here = session_id.as_str().into();
    let earlier: Vec<(String, i64)> = load(db, &sql, &[here, after_seq.into()])?;
    let earlier: BTreeMap<String, i64> = earlier.into_iter().collect();
    earlier.values().for_each(|at| work.gone.summaries.add(*at));
    for summary in find_summaries(db, session_id, &gone)? {
        if !earlier.contains_key(summary.id.as_str()) {
            work.gone.summaries.add(summary.created_at);
        }
    }
    Ok(())
}
