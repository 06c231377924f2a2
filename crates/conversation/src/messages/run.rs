//! The events that form one message, without their contents: their numbers, their lengths
//! and the states of their calls. A few small reads load a run of a thousand long results.

use serde_json::Value as Json;

use super::view::MAX_RUN_EVENTS;
use crate::log::event::IS_RUN_MEMBER;
use crate::log::find::find_seqs;
use crate::log::note::Note;
use crate::log::row::{ROW_BYTES, TreePosition, get_event_text};
use crate::log::tool::CALL_ID_PATH;
use crate::messages::tree::children::{load_child_links, load_children};
use base::action::{StoredAction, result_action};
use base::budget::MAX_ANSWER_BYTES;
use base::columns::{find, load};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::{row, sql};

/// The most rows that one statement reads.
const BATCH: i64 = 64;

/// The most bytes of a run's notes in memory. The notes of a real run name a few dozen
/// calls, in some kilobytes.
const MAX_NOTES_BYTES: usize = 4 << 20;

/// An event of a message.
#[derive(Clone, Debug)]
pub struct RunEvent {
    pub seq: i64,
    pub parent_seq: i64,
    pub id: String,
    pub action: StoredAction,
    /// Whether this event forms one message with adjacent events of its kind.
    pub is_run_member: bool,
    /// Whether a run is split above this event, so that it starts a message.
    splits_run: bool,
    /// The bytes of everything that the event contains.
    pub bytes: usize,
    /// The call that this event answers, if the event is a result.
    pub answered: Option<String>,
    /// The event's note as JSON, without reasoning and arguments.
    note: Option<String>,
}

/// A run event, as stored in its row.
struct RunRow {
    event: RunEvent,
    is_branch: bool,
    /// Whether the id of the answered call is only in the event's slices.
    hides_call: bool,
}

row! {
    /// The columns of an event `e`. `hides_call` is also true if the column `tool` is not JSON.
    for RunRow {
        position: TreePosition = TreePosition::COLUMNS,
        id: String = "e.id",
        action: StoredAction = "e.action",
        is_run_member: bool = IS_RUN_MEMBER,
        bytes: i64 = ROW_BYTES,
        note: Option<String> = "iif(json_valid(coalesce(e.note, '{}')),
             json_remove(e.note, '$.reasoning', '$.badArguments', '$.approval', '$.isJson'),
             substr(e.note, 1, 100))",
        answered: Option<String> = sql!(
            "iif(e.action = ", result_action!(), " AND json_valid(e.tool), e.tool ->> '",
            CALL_ID_PATH, "', NULL)"
        ),
        hides_call: bool = sql!(
            "CASE
           WHEN e.action <> ", result_action!(), " THEN 0
           WHEN e.tool IS NULL THEN e.sliced_bytes > 0
           ELSE NOT json_valid(e.tool)
         END"
        ),
        splits_run: bool = "e.splits_run",
    }
    Ok(Self {
        event: RunEvent {
            seq: position.seq,
            parent_seq: position.parent_seq,
            id,
            action,
            is_run_member,
            splits_run,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            answered,
            note: note.filter(|note| note != "{}"),
        },
        is_branch: position.is_branch,
        hides_call,
    })
}

impl RunRow {
    fn complete(mut self, db: &dyn Database, session_id: &Id) -> Result<RunEvent> {
        if self.hides_call {
            let whole = get_event_text(db, session_id, self.event.seq)?;
            self.event.answered = whole.answered_call()?;
        }
        Ok(self.event)
    }
}

impl RunEvent {
    /// The turn's note about this event's calls.
    pub fn note(&self) -> Result<Note> {
        Note::parse(self.note.as_deref()).ok_or_else(|| Error::corrupt_row(&self.id, "note"))
    }

    pub fn has_note(&self) -> bool {
        self.note.is_some()
    }
}

/// A message's events, oldest first.
pub struct Run {
    pub events: Vec<RunEvent>,
}

impl Run {
    pub fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.bytes).sum()
    }

    pub fn seqs(&self) -> impl Iterator<Item = i64> {
        self.events.iter().map(|event| event.seq)
    }

    pub fn last_seq(&self) -> i64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    /// Whether the message exceeds the longest answer. A single event always fits.
    pub fn is_too_long(&self) -> bool {
        self.events.len() > 1 && self.bytes() > MAX_ANSWER_BYTES
    }

    /// The error for a message that is too long; names another way to read it.
    pub fn too_long(&self) -> Error {
        let (first, last) = (self.events.first(), self.last_seq());
        let after_seq = first.map_or(0, |first| first.seq - 1);
        let error = Error::payload_too_large(
            "A message that is made from many events",
            MAX_ANSWER_BYTES,
            self.bytes(),
        );
        let advice = format!(
            "{} Read its events with `loadEvents`, `afterSeq` {after_seq} and `beforeSeq` {}, a few at a time.",
            error.message,
            last + 1
        );
        error
            .with_message(advice)
            .with("afterSeq", Json::from(after_seq))
            .with("beforeSeq", Json::from(last + 1))
    }
}

pub fn find_run_event(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<RunEvent>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2",
        RunRow::COLUMNS
    );
    find(db, &sql, &[session_id.as_str().into(), seq.into()])?
        .map(|row: RunRow| row.complete(db, session_id))
        .transpose()
}

pub fn get_run_event(db: &dyn Database, session_id: &Id, seq: i64) -> Result<RunEvent> {
    find_run_event(db, session_id, seq)?
        .ok_or_else(|| Error::storage(format!("event {seq} is missing")))
}

/// The run of the message with this id. An event inside a run has no message of its own.
pub fn find_run(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<Run>> {
    let found = find_seqs(db, session_id, std::iter::once(id))?;
    let Some(seq) = found.get(id.as_str()) else {
        return Ok(None);
    };
    let first = get_run_event(db, session_id, *seq)?;
    match find_above(db, session_id, &first)? {
        Some(_) => Ok(None),
        None => load_run_from(db, session_id, first).map(Some),
    }
}

/// The event above this one in its run. `None`: the event starts a message.
pub fn find_above(
    db: &dyn Database,
    session_id: &Id,
    event: &RunEvent,
) -> Result<Option<RunEvent>> {
    if !event.is_run_member || event.splits_run || event.parent_seq == 0 {
        return Ok(None);
    }
    let above = get_run_event(db, session_id, event.parent_seq)?;
    Ok(Some(above).filter(|above| above.is_run_member))
}

/// The event, and the events below it that continue its run.
pub fn load_run_from(db: &dyn Database, session_id: &Id, first: RunEvent) -> Result<Run> {
    let continues = first.is_run_member;
    let mut run = RunBuilder::default();
    run.add(first)?;
    while continues && run.events.len() < MAX_RUN_EVENTS {
        let last_seq = run.events.last().map_or(0, |last| last.seq);
        let more = load_after(db, session_id, last_seq)?;
        if more.is_empty() {
            // The next row doesn't continue the run, but a later row may.
            match find_continuation(db, session_id, last_seq)? {
                Some(event) => run.add(event)?,
                None => break,
            }
        }
        for event in more {
            run.add(event)?;
        }
    }
    run.events.truncate(MAX_RUN_EVENTS);
    Ok(Run { events: run.events })
}

/// The run of the event at `seq`: the events above it and below it.
pub fn load_run_around(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Run> {
    let event = get_run_event(db, session_id, seq)?;
    let mut above = RunBuilder::default();
    let mut next = find_above(db, session_id, &event)?;
    while let Some(parent) = next.take() {
        if above.events.len() >= MAX_RUN_EVENTS {
            break;
        }
        next = find_above(db, session_id, &parent)?;
        above.add(parent)?;
    }
    above.events.reverse();
    let run = load_run_from(db, session_id, event)?;
    above.events.extend(run.events);
    Ok(Run {
        events: above.events,
    })
}

/// The events of the runs that continue a split message, at most [`MAX_RUN_EVENTS`]. They
/// may include results of the message's calls.
pub fn load_continuations(
    db: &dyn Database,
    session_id: &Id,
    last_seq: i64,
) -> Result<Vec<RunEvent>> {
    let mut below = RunBuilder::default();
    let mut open = vec![last_seq];
    while let Some(seq) = open.pop() {
        for child in load_children(db, session_id, seq)? {
            if below.events.len() >= MAX_RUN_EVENTS {
                return Ok(below.events);
            }
            let event = get_run_event(db, session_id, child)?;
            if event.is_run_member {
                open.push(child);
                below.add(event)?;
            }
        }
    }
    Ok(below.events)
}

/// The newest event that continues the run of the event at `seq`, across splits. Of several
/// branches, the newest is followed.
pub fn find_newest_end(db: &dyn Database, session_id: &Id, seq: i64) -> Result<i64> {
    if !get_run_event(db, session_id, seq)?.is_run_member {
        return Ok(seq);
    }
    let mut end = seq;
    for _ in 0..MAX_RUN_EVENTS {
        let children = load_child_links(db, session_id, end)?;
        match children.iter().rev().find(|child| child.is_run_member) {
            Some(child) => end = child.seq,
            None => break,
        }
    }
    Ok(end)
}

/// Collects a run's events and keeps their notes within [`MAX_NOTES_BYTES`].
#[derive(Default)]
struct RunBuilder {
    events: Vec<RunEvent>,
    notes_bytes: usize,
}

impl RunBuilder {
    fn add(&mut self, event: RunEvent) -> Result<()> {
        self.notes_bytes += event.note.as_ref().map_or(0, String::len);
        if self.notes_bytes > MAX_NOTES_BYTES {
            let what = "The size of the notes on one message's tool calls";
            return Err(Error::payload_too_large(
                what,
                MAX_NOTES_BYTES,
                self.notes_bytes,
            ));
        }
        self.events.push(event);
        Ok(())
    }
}

/// The rows directly after `seq` that continue its run, at most [`BATCH`] rows.
fn load_after(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Vec<RunEvent>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq > ?2
          ORDER BY e.seq
          LIMIT ?3",
        RunRow::COLUMNS
    );
    let params = [session_id.as_str().into(), seq.into(), BATCH.into()];
    let mut run = Vec::new();
    let mut last_seq = seq;
    for row in load::<RunRow>(db, &sql, &params)? {
        let event = &row.event;
        let continues = event.parent_seq == last_seq && event.is_run_member && !event.splits_run;
        if row.is_branch || !continues {
            break;
        }
        let event = row.complete(db, session_id)?;
        last_seq = event.seq;
        run.push(event);
    }
    Ok(run)
}

/// The child of the event at `seq` that continues the run.
fn find_continuation(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<RunEvent>> {
    let children = load_child_links(db, session_id, seq)?;
    let next = children
        .iter()
        .find(|child| child.is_run_member && !child.splits_run);
    next.map(|child| get_run_event(db, session_id, child.seq))
        .transpose()
}
