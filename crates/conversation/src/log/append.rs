//! Appends events: plans the position of each event, then writes all events or none.

use crate::json_schema::JsonSchema;
use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::event::NewEvent;
use super::find::find_seqs_and_ends;
use super::media::{self, StrippedText};
use super::row_draft::RowDraft;
use super::slices::MAX_EVENT_BYTES;
use super::tip::{AppendTip, Leaf, LogTip, StoredSettings, find_indexed_seq, get_append_tip};
use super::tokens;
use super::totals::PathEnd;
use super::write::{Written, write_rows};
use crate::index::{self, SessionIndex};
use crate::session::activity;
use crate::session::learn_due::mark_due;
use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::numbers::MAX_SEQ;

/// The parent of the first event of an append.
#[derive(Debug)]
pub enum Parent {
    Leaf,
    Root,
    After(Id),
}

impl Parent {
    /// Converts a field that may be absent, `null` or an id.
    pub fn from_field(field: Option<Option<Id>>) -> Self {
        match field {
            None => Parent::Leaf,
            Some(None) => Parent::Root,
            Some(Some(id)) => Parent::After(id),
        }
    }
}

/// The result of appending one event.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppendedEvent {
    pub id: String,
    pub seq: i64,
    /// `false`: the session already had an event with this id, and it is unchanged.
    pub inserted: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendOutcome {
    pub events: Vec<AppendedEvent>,
    pub leaf_id: Option<String>,
    #[serde(skip)]
    pub follow_up: FollowUp,
    /// When the new events were written. A clock that goes back makes no event older than
    /// the event before it.
    #[serde(skip)]
    pub written_at: i64,
}

/// What decides which work follows an append.
#[derive(Debug, Default)]
pub struct FollowUp {
    /// Whether and when the session is to be compacted and learned from, as it is stored.
    pub settings: Rc<StoredSettings>,
    /// When the session is due for a learning pass, as the append leaves it.
    pub learn_due_at: Option<i64>,
}

/// Decides when a growing session is due for a learning pass, by the stored settings.
/// `None`: the agent doesn't learn.
pub type FindDue<'a> = &'a dyn Fn(&StoredSettings) -> Option<i64>;

/// Appends `events`, which are already checked, in order.
pub fn append(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    events: &[NewEvent],
    parent: &Parent,
    expected_leaf: Option<&Option<Id>>,
) -> Result<AppendOutcome> {
    let is_never = |_: &StoredSettings| None;
    append_and_schedule_learning(
        db,
        host,
        session_id,
        events,
        (parent, expected_leaf),
        &is_never,
    )
}

/// Like [`append`], and schedules a learning pass in the same transaction.
pub fn append_and_schedule_learning(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    events: &[NewEvent],
    (parent, expected_leaf): (&Parent, Option<&Option<Id>>),
    find_due: FindDue<'_>,
) -> Result<AppendOutcome> {
    let named = named_ids(events, parent);
    let single = match named.as_slice() {
        [id] if id.find_seq().is_none() => Some(*id),
        _ => None,
    };
    let mut end = get_append_tip(db, session_id, single)?;
    if let Some(id) = single.filter(|_| end.is_id_unchecked)
        && (expected_leaf.is_some() || !is_checked_when_written(events, &end.tip))
    {
        end.known_seq = find_indexed_seq(db, session_id, id)?;
        end.is_id_unchecked = false;
    }
    let known = match (single, named.as_slice()) {
        (Some(id), _) => end
            .known_seq
            .map(|seq| (id.as_str().to_owned(), seq))
            .into_iter()
            .collect(),
        (None, []) => HashMap::new(),
        (None, several) => {
            let (known, more) = find_seqs_and_ends(db, session_id, several.iter().copied())?;
            end.ends.extend(more);
            known
        }
    };
    let is_new = |event: &NewEvent| {
        event
            .id
            .as_ref()
            .is_none_or(|id| !known.contains_key(id.as_str()))
    };
    // A retry of an append that was written adds nothing, so nothing can conflict.
    if events.iter().any(is_new) {
        check_expected_leaf(&end.tip, expected_leaf)?;
    }
    let now_ms = host.now_ms();
    let written_at = now_ms.max(end.tip.written_at);
    let plan = plan(host, events, parent, &end, known)?;
    let mut follow_up = FollowUp {
        settings: Rc::clone(&end.settings),
        learn_due_at: end.learn_due_at,
    };
    if !plan.rows.is_empty() {
        let search_index = index::index_of(db, end.number, end.search.as_deref())?;
        let rows = (plan.rows.as_slice(), end.ends.as_slice());
        let write_all = || write(db, written_at, session_id, rows, search_index.as_ref());
        // A known time that has passed may have been cleared by another Rust half of the object.
        let is_earlier = |due_at: &i64| {
            let known = end.learn_due_at;
            known.is_none_or(|known| *due_at < known || known <= now_ms)
        };
        let due_at = find_due(&follow_up.settings).filter(is_earlier);
        let written = match due_at {
            None if !end.is_settled => write_all()?,
            _ => atomically(db, || {
                let written = write_all()?;
                if matches!(written, Written::IdIsKnown) {
                    return Ok(written);
                }
                if end.is_settled {
                    activity::record(db, session_id)?;
                }
                if let Some(due_at) = due_at {
                    mark_due(db, session_id, due_at)?;
                }
                Ok(written)
            })?,
        };
        let path_end = match written {
            Written::All(path_end) => path_end,
            // The write has cleared what was kept, so this time the id is looked up.
            Written::IdIsKnown => {
                let parent = (parent, expected_leaf);
                return append_and_schedule_learning(
                    db, host, session_id, events, parent, find_due,
                );
            }
        };
        end.learn_due_at = [end.learn_due_at, due_at].into_iter().flatten().min();
        follow_up.learn_due_at = end.learn_due_at;
        let is_indexed = search_index.is_none_or(|index| index.covers(end.tip.last_seq() + 1));
        if !end.is_settled
            && is_indexed
            && let Some(newest) = plan.leaf.clone().zip(path_end)
        {
            end.cache_after_append(db, session_id, newest, written_at);
        }
    }
    Ok(AppendOutcome {
        events: plan.outcomes,
        leaf_id: plan.leaf.map(|leaf| leaf.id),
        follow_up,
        written_at,
    })
}

/// Whether this is one event with an id and nothing but a known id can keep it from being written.
/// Then the statement that writes it finds out whether the id is known.
fn is_checked_when_written(events: &[NewEvent], tip: &LogTip) -> bool {
    let [event] = events else {
        return false;
    };
    let bytes = event.content.as_ref().map_or(0, String::len)
        + event
            .metadata
            .as_ref()
            .map_or(0, |metadata| metadata.as_str().len())
        + event
            .message
            .as_ref()
            .map_or(0, |message| message.fields.len());
    event.id.is_some()
        && event.tool_calls.is_none()
        && bytes < MAX_EVENT_BYTES / 2
        && tip.last_seq() < MAX_SEQ
}

/// The ids that this append names: of events that it follows, and of its own events.
fn named_ids<'a>(events: &'a [NewEvent], parent: &'a Parent) -> Vec<&'a Id> {
    let after = match parent {
        Parent::After(id) => Some(id),
        Parent::Leaf | Parent::Root => None,
    };
    let own_parents = events
        .iter()
        .filter_map(|event| event.parent_id.as_ref()?.as_ref());
    let own_ids = events.iter().filter_map(|event| event.id.as_ref());
    after
        .into_iter()
        .chain(own_parents)
        .chain(own_ids)
        .collect()
}

pub fn check_leaf(leaf: Option<&str>, expected: Option<&Option<Id>>) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    if expected.as_ref().map(Id::as_str) == leaf {
        return Ok(());
    }
    Err(Error::new(
        Code::LeafMoved,
        "The session's leaf (the end of its current branch) is not the expected one: others have \
         written in the meantime. Read the new events, then append after the new leaf.",
    )
    .with("leafId", leaf)
    .with("expectedLeafId", expected.as_ref().map(Id::as_str)))
}

fn check_expected_leaf(tip: &LogTip, expected: Option<&Option<Id>>) -> Result<()> {
    check_leaf(tip.leaf.as_ref().map(|leaf| leaf.id.as_str()), expected)
}

/// A row to write: an event and its position.
struct PlannedRow<'a> {
    event: &'a NewEvent,
    seq: i64,
    id: Id,
    is_id_unchecked: bool,
    parent: Option<Leaf>,
    is_branch: bool,
    may_split: bool,
}

struct AppendPlan<'a> {
    rows: Vec<PlannedRow<'a>>,
    outcomes: Vec<AppendedEvent>,
    leaf: Option<Leaf>,
}

/// Assigns a number, id and parent to every new event, without reading the database.
fn plan<'a>(
    host: &dyn Host,
    events: &'a [NewEvent],
    parent: &Parent,
    AppendTip {
        tip,
        has_summary,
        is_id_unchecked,
        ..
    }: &AppendTip,
    mut known: HashMap<String, i64>,
) -> Result<AppendPlan<'a>> {
    let find_parent = |known: &HashMap<String, i64>, field: &str, id: &Id| {
        known
            .get(id.as_str())
            .map(|seq| Leaf {
                seq: *seq,
                id: id.as_str().to_owned(),
            })
            .ok_or_else(|| unknown_parent(field, id))
    };
    let mut follow = match parent {
        Parent::Leaf => tip.leaf.clone(),
        Parent::Root => None,
        Parent::After(id) => Some(find_parent(&known, "parentId", id)?),
    };
    let mut newest_seq = tip.newest_seq;
    let mut next_seq = tip.last_seq() + 1;
    let mut plan = AppendPlan {
        rows: Vec::with_capacity(events.len()),
        outcomes: Vec::with_capacity(events.len()),
        leaf: tip.leaf.clone(),
    };
    for (index, event) in events.iter().enumerate() {
        if let Some((id, seq)) = event
            .id
            .as_ref()
            .and_then(|id| Some((id, *known.get(id.as_str())?)))
        {
            // If the caller named a parent, the next event follows this existing event.
            if !matches!(parent, Parent::Leaf) {
                follow = Some(Leaf {
                    seq,
                    id: id.as_str().to_owned(),
                });
            }
            plan.outcomes.push(AppendedEvent {
                id: id.as_str().to_owned(),
                seq,
                inserted: false,
            });
            continue;
        }
        let seq = next_seq;
        if seq > MAX_SEQ {
            return Err(no_seq_left(seq));
        }
        let id = event
            .id
            .clone()
            .unwrap_or_else(|| Id::mint_event(host, seq));
        let event_parent = match &event.parent_id {
            None => follow.take(),
            Some(None) => None,
            Some(Some(id)) => Some(find_parent(
                &known,
                &format!("events[{index}].parentId"),
                id,
            )?),
        };
        let leaf = Leaf {
            seq,
            id: id.as_str().to_owned(),
        };
        let is_branch = event_parent.as_ref().map_or(0, |parent| parent.seq) != newest_seq;
        plan.rows.push(PlannedRow {
            event,
            seq,
            is_id_unchecked: *is_id_unchecked,
            is_branch,
            may_split: is_branch || (*has_summary && plan.rows.is_empty()),
            parent: event_parent,
            id,
        });
        plan.outcomes.push(AppendedEvent {
            id: leaf.id.clone(),
            seq,
            inserted: true,
        });
        known.insert(leaf.id.clone(), seq);
        plan.leaf = Some(leaf.clone());
        follow = Some(leaf);
        newest_seq = seq;
        next_seq += 1;
    }
    Ok(plan)
}

fn no_seq_left(seq: i64) -> Error {
    Error::new(
        Code::PayloadTooLarge,
        format!(
            "This session has used its last event number, {MAX_SEQ}, and accepts no more events. \
             Continue in a fork (`forkSession`), which numbers its events from 1."
        ),
    )
    .with("limit", MAX_SEQ)
    .with("actual", seq)
}

fn unknown_parent(field: &str, id: &Id) -> Error {
    Error::new(
        Code::MessageNotFound,
        format!(
            "`{field}` is not an event of this session. Omit it to follow the leaf, or set it \
                 to `null` for a root."
        ),
    )
    .with_field(field)
    .with("id", id.as_str())
}

/// Writes the rows.
fn write(
    db: &dyn Database,
    written_at: i64,
    session_id: &Id,
    (rows, ends): (&[PlannedRow<'_>], &[PathEnd]),
    search_index: Option<&SessionIndex>,
) -> Result<Written> {
    let tools: Vec<Option<String>> = rows.iter().map(|row| row.event.tool_json()).collect();
    let notes: Vec<Option<String>> = rows
        .iter()
        .map(|row| row.event.note.as_ref()?.json())
        .collect();
    let cuts: Vec<Option<StrippedText<'_>>> = rows
        .iter()
        .map(|row| Some(media::cut(&row.event.message.as_ref()?.fields)))
        .collect();
    let rows = rows
        .iter()
        .zip(tools.iter().zip(notes.iter().zip(&cuts)))
        .enumerate()
        .map(|(index, (row, (tool, (note, cut))))| {
            row.draft(tool.as_deref(), note.as_deref(), cut.as_ref(), written_at)
                .fit(&format!("events[{index}]"))
        })
        .collect::<Result<Vec<_>>>()?;
    write_rows(db, session_id, (rows, ends), search_index)
}

impl PlannedRow<'_> {
    fn draft<'a>(
        &'a self,
        tool: Option<&'a str>,
        note: Option<&'a str>,
        cut: Option<&'a StrippedText<'a>>,
        written_at: i64,
    ) -> RowDraft<'a> {
        let event = self.event;
        let message = event.message.as_ref();
        RowDraft {
            seq: self.seq,
            id: self.id.as_str(),
            id_indexed: u8::from(!self.id.leads_to(self.seq)),
            is_id_unchecked: self.is_id_unchecked,
            parent_seq: self.parent.as_ref().map_or(0, |parent| parent.seq),
            parent_id: self.parent.as_ref().map(|parent| parent.id.as_str()),
            is_branch: u8::from(self.is_branch),
            may_split: self.may_split,
            action: event.action,
            content: event.content.as_deref(),
            tool,
            metadata: event.metadata.as_ref().map(|metadata| metadata.as_str()),
            message: cut.map(|cut| cut.text.as_ref()),
            media: cut.and_then(|cut| cut.positions.as_deref()),
            message_dated: u8::from(message.is_some_and(|message| message.is_dated)),
            note,
            ends_turn: event.ends_turn.as_deref(),
            tokens: tokens::of_event(event),
            created_at: event
                .created_at
                .map_or(written_at, |created_at| created_at.0),
            written_at,
            payloads: cut.map_or(&[], |cut| cut.payloads.as_slice()),
            cut_bytes: cut.map_or(0, |cut| cut.bytes),
        }
    }
}
