//! Appending: decide where each event stands, then write all of them or none.

use std::collections::HashMap;

use serde::Serialize;

use super::event::NewEvent;
use super::find::find_seqs;
use super::tip::{Leaf, Tip, get_tip};
use crate::database::{Database, MAX_LIST_BYTES, MAX_VALUE_BYTES, Value, atomically};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::ids::Id;

/// Where the first event of an append goes.
#[derive(Debug)]
pub enum Parent {
    Leaf,
    Root,
    After(Id),
}

impl Parent {
    /// From a field that may be absent, `null` or an id.
    pub fn from_field(field: Option<Option<Id>>) -> Self {
        match field {
            None => Parent::Leaf,
            Some(None) => Parent::Root,
            Some(Some(id)) => Parent::After(id),
        }
    }
}

/// What became of one event of an append.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
pub struct Appended {
    pub id: String,
    pub seq: i64,
    /// `false`: the id was already there, and its row is as it was.
    pub inserted: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct AppendOutcome {
    pub events: Vec<Appended>,
    pub leaf_id: Option<String>,
}

/// Appends `events`, already checked, in their order.
pub fn append(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    events: &[NewEvent],
    parent: &Parent,
    expected_leaf: Option<&Option<Id>>,
) -> Result<AppendOutcome> {
    let tip = get_tip(db, session_id)?;
    let known = find_known(db, session_id, events, parent)?;
    let is_new = |event: &NewEvent| {
        event
            .id
            .as_ref()
            .is_none_or(|id| !known.contains_key(id.as_str()))
    };
    // A retry whose first try was written asks for nothing new, so nothing can clash.
    if events.iter().any(is_new) {
        check_expected_leaf(&tip, expected_leaf)?;
    }
    let plan = plan(host, events, parent, tip, known)?;
    write(db, host, session_id, &plan.rows)?;
    Ok(AppendOutcome {
        events: plan.outcomes,
        leaf_id: plan.leaf.map(|leaf| leaf.id),
    })
}

/// The ids that this append names and that are in the session already.
fn find_known(
    db: &dyn Database,
    session_id: &Id,
    events: &[NewEvent],
    parent: &Parent,
) -> Result<HashMap<String, i64>> {
    let after = match parent {
        Parent::After(id) => Some(id),
        Parent::Leaf | Parent::Root => None,
    };
    let own_parents = events
        .iter()
        .filter_map(|event| event.parent_id.as_ref()?.as_ref());
    let own_ids = events.iter().filter_map(|event| event.id.as_ref());
    let ids: Vec<&Id> = after
        .into_iter()
        .chain(own_parents)
        .chain(own_ids)
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    find_seqs(db, session_id, ids.into_iter())
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
        "The session has moved on: its leaf is not the one expected. Read what was added, then append after the new leaf.",
    )
    .with("leafId", leaf)
    .with("expectedLeafId", expected.as_ref().map(Id::as_str)))
}

fn check_expected_leaf(tip: &Tip, expected: Option<&Option<Id>>) -> Result<()> {
    check_leaf(tip.leaf.as_ref().map(|leaf| leaf.id.as_str()), expected)
}

/// A row to write: an event and its place.
struct Planned<'a> {
    event: &'a NewEvent,
    seq: i64,
    id: Id,
    parent: Option<Leaf>,
    is_branch: bool,
}

struct Plan<'a> {
    rows: Vec<Planned<'a>>,
    outcomes: Vec<Appended>,
    leaf: Option<Leaf>,
}

/// Gives every new event its number, id and parent. Decides; reads nothing.
fn plan<'a>(
    host: &dyn Host,
    events: &'a [NewEvent],
    parent: &Parent,
    tip: Tip,
    mut known: HashMap<String, i64>,
) -> Result<Plan<'a>> {
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
    let mut plan = Plan {
        rows: Vec::with_capacity(events.len()),
        outcomes: Vec::with_capacity(events.len()),
        leaf: tip.leaf,
    };
    for (index, event) in events.iter().enumerate() {
        if let Some((id, seq)) = event
            .id
            .as_ref()
            .and_then(|id| Some((id, *known.get(id.as_str())?)))
        {
            // Where a parent was named, what follows an event already there follows it.
            if !matches!(parent, Parent::Leaf) {
                follow = Some(Leaf {
                    seq,
                    id: id.as_str().to_owned(),
                });
            }
            plan.outcomes.push(Appended {
                id: id.as_str().to_owned(),
                seq,
                inserted: false,
            });
            continue;
        }
        let seq = next_seq;
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
        plan.rows.push(Planned {
            event,
            seq,
            is_branch: event_parent.as_ref().map_or(0, |parent| parent.seq) != newest_seq,
            parent: event_parent,
            id,
        });
        plan.outcomes.push(Appended {
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

fn unknown_parent(field: &str, id: &Id) -> Error {
    Error::new(
        Code::MessageNotFound,
        format!("`{field}` names no event of this session. Leave it out to follow the leaf, or give `null` for a root."),
    )
    .with("field", field)
    .with("id", id.as_str())
}

const INSERT: &str = "
    INSERT INTO cf_agents_events
           (session_id, seq, id, id_indexed, parent_seq, parent_id, is_branch,
            action, content, tool, metadata, message, message_dated, created_at, written_at)";

fn write(db: &dyn Database, host: &dyn Host, session_id: &Id, rows: &[Planned<'_>]) -> Result<()> {
    let now_ms = host.now_ms();
    let rows: Vec<Columns> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| Columns::new(row, index, now_ms))
        .collect::<Result<_>>()?;
    let batches = batches(&rows);
    match batches.as_slice() {
        [] => Ok(()),
        // One statement is atomic by itself.
        [batch] => write_batch(db, session_id, batch, now_ms),
        several => atomically(db, || {
            several
                .iter()
                .try_for_each(|batch| write_batch(db, session_id, batch, now_ms))
        }),
    }
}

/// A row's columns after `session_id`, in the order of [`INSERT`], less `written_at`.
#[derive(Serialize)]
struct Columns<'a>(
    i64,
    &'a str,
    u8,
    i64,
    Option<&'a str>,
    u8,
    &'static str,
    Option<&'a str>,
    Option<String>,
    Option<&'a str>,
    Option<&'a str>,
    u8,
    i64,
);

impl<'a> Columns<'a> {
    fn new(row: &'a Planned<'a>, index: usize, now_ms: i64) -> Result<Self> {
        let columns = Self(
            row.seq,
            row.id.as_str(),
            u8::from(!row.id.leads_to(row.seq)),
            row.parent.as_ref().map_or(0, |parent| parent.seq),
            row.parent.as_ref().map(|parent| parent.id.as_str()),
            u8::from(row.is_branch),
            row.event.action.name(),
            row.event.content.as_deref(),
            row.event.tool_json(),
            row.event
                .metadata
                .as_ref()
                .map(|metadata| metadata.as_str()),
            row.event
                .message
                .as_ref()
                .map(|message| message.fields.as_str()),
            u8::from(
                row.event
                    .message
                    .as_ref()
                    .is_some_and(|message| message.is_dated),
            ),
            row.event
                .created_at
                .map_or(now_ms, |created_at| created_at.0),
        );
        if columns.bytes() > MAX_VALUE_BYTES {
            return Err(
                Error::payload_too_large("The event", MAX_VALUE_BYTES, columns.bytes())
                    .with("field", format!("events[{index}]")),
            );
        }
        Ok(columns)
    }

    /// About what the row takes in the table.
    fn bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        self.1.len()
            + length(self.4)
            + length(self.7)
            + length(self.8.as_deref())
            + length(self.9)
            + length(self.10)
    }

    fn values(&self, session_id: &Id, now_ms: i64) -> [Value; 15] {
        [
            session_id.as_str().into(),
            self.0.into(),
            self.1.into(),
            u32::from(self.2).into(),
            self.3.into(),
            self.4.into(),
            u32::from(self.5).into(),
            self.6.into(),
            self.7.into(),
            self.8.as_deref().into(),
            self.9.into(),
            self.10.into(),
            u32::from(self.11).into(),
            self.12.into(),
            now_ms.into(),
        ]
    }
}

/// Rows in runs that each fit one statement: a run's JSON stays below the
/// engine's value limit, and a row too big for that goes alone, column by column.
fn batches<'a, 'b>(rows: &'b [Columns<'a>]) -> Vec<&'b [Columns<'a>]> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (index, row) in rows.iter().enumerate() {
        // Escaped, a byte takes at most six.
        let size = row.bytes() * 6 + 200;
        if bytes + size > MAX_LIST_BYTES && index > start {
            batches.extend(rows.get(start..index));
            start = index;
            bytes = 0;
        }
        bytes += size;
    }
    batches.extend(rows.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

fn write_batch(
    db: &dyn Database,
    session_id: &Id,
    batch: &[Columns<'_>],
    now_ms: i64,
) -> Result<()> {
    if let [row] = batch {
        let sql = format!(
            "{INSERT} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
        );
        return db.run(&sql, &row.values(session_id, now_ms));
    }
    let json = serde_json::to_string(batch).map_err(|error| Error::storage(error.to_string()))?;
    let sql = format!(
        "{INSERT}
         SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
                value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, ?3
           FROM json_each(?2)"
    );
    db.run(
        &sql,
        &[session_id.as_str().into(), json.into(), now_ms.into()],
    )
}
