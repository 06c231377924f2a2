//! Single messages, by their id or by their place.

use super::view::{BODY, COLUMNS, EventRow, Gatherer, MAX_RUN_EVENTS, Message};
use crate::database::{Database, find_row};
use crate::error::{Error, Result};
use crate::ids::Id;
use crate::log::find::find_seqs;
use crate::log::media;
use crate::log::slices::load_slices;
use crate::tree::children::load_children;
use crate::tree::leaf::message_not_found;
use crate::tree::path::{Step, walk_path};

/// Rows of a run that one statement reads.
const RUN_BITE: i64 = 16;

pub fn find_event_row(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<EventRow>> {
    find_event_text(db, session_id, seq)?
        .map(|row| with_media(db, session_id, row))
        .transpose()
}

/// The same without the payloads of its media, for a reader who passes them over.
pub fn find_event_text(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<EventRow>> {
    let sql = format!(
        "SELECT e.seq, e.parent_seq, e.is_branch, {COLUMNS}, {BODY}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq = ?2"
    );
    find_row(db, &sql, &[session_id.as_str().into(), seq.into()])?
        .map(|row| with_slices(db, session_id, EventRow::from_row(&row)?))
        .transpose()
}

/// Puts in what is not in the row.
pub fn complete(db: &dyn Database, session_id: &Id, row: EventRow) -> Result<EventRow> {
    with_media(db, session_id, with_slices(db, session_id, row)?)
}

fn with_media(db: &dyn Database, session_id: &Id, mut row: EventRow) -> Result<EventRow> {
    if let (Some(places), Some(message)) = (&row.media, &row.message) {
        let restored = media::restore(db, session_id, message, places)?;
        row.message = Some(restored.ok_or_else(|| Error::corrupt_row(&row.id, "media"))?);
    }
    Ok(row)
}

/// What a row had no room for.
fn with_slices(db: &dyn Database, session_id: &Id, mut row: EventRow) -> Result<EventRow> {
    if row.sliced_bytes == 0 {
        return Ok(row);
    }
    let mut fields = load_slices(db, session_id.as_str(), row.seq, row.message.as_deref())?;
    row.content = fields.remove("content").unwrap_or(row.content);
    row.tool = fields.remove("tool").or(row.tool);
    row.metadata = fields.remove("metadata").or(row.metadata);
    row.message = fields.remove("message").or(row.message);
    Ok(row)
}

pub fn get_event_row(db: &dyn Database, session_id: &Id, seq: i64) -> Result<EventRow> {
    find_event_row(db, session_id, seq)?
        .ok_or_else(|| Error::storage(format!("event {seq} is missing")))
}

/// The message of this id. An event in the middle of a run is no message's.
pub fn find_message(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<Message>> {
    let found = find_seqs(db, session_id, std::iter::once(id))?;
    let Some(seq) = found.get(id.as_str()) else {
        return Ok(None);
    };
    let row = get_event_row(db, session_id, *seq)?;
    if row.is_run_member() && row.parent_seq != 0 {
        let parent = get_event_row(db, session_id, row.parent_seq)?;
        if parent.is_run_member() {
            return Ok(None);
        }
    }
    message_from(db, session_id, row).map(Some)
}

/// The message that starts with `row`: itself, or the run that it begins.
pub fn message_from(db: &dyn Database, session_id: &Id, row: EventRow) -> Result<Message> {
    let rows = load_run(db, session_id, row)?;
    let mut gatherer = Gatherer::default();
    let mut messages = Vec::new();
    for row in rows.into_iter().rev() {
        messages.extend(gatherer.take(row)?.into_iter().flatten());
    }
    messages.extend(gatherer.finish()?);
    messages
        .pop()
        .ok_or_else(|| Error::storage("a message without rows"))
}

/// The row, and those that go on with its run, oldest first.
pub fn load_run(db: &dyn Database, session_id: &Id, row: EventRow) -> Result<Vec<EventRow>> {
    let mut rows = vec![row];
    let is_run = rows.first().is_some_and(EventRow::is_run_member);
    while is_run && rows.len() < MAX_RUN_EVENTS {
        let Some(last_seq) = rows.last().map(|row| row.seq) else {
            break;
        };
        let more = load_run_after(db, session_id, last_seq)?;
        if !more.is_empty() {
            rows.extend(more);
            continue;
        }
        // Something else stands right after it: a run that goes on does so as a branch.
        match find_branch_of_run(db, session_id, last_seq)? {
            Some(row) => rows.push(row),
            None => break,
        }
    }
    rows.truncate(MAX_RUN_EVENTS);
    Ok(rows)
}

/// The newest child of a run's event that goes on with the run, where it is not
/// the row right after it.
fn find_branch_of_run(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<EventRow>> {
    for child in load_children(db, session_id, seq)?.into_iter().rev() {
        let row = get_event_row(db, session_id, child)?;
        if row.is_run_member() {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The rows of the message that the event at `seq` belongs to, oldest first: those
/// above it on its own path, and those that go on with it.
pub fn load_message_rows(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Vec<EventRow>> {
    let row = get_event_row(db, session_id, seq)?;
    let mut above = Vec::new();
    let mut parent_seq = row.parent_seq;
    while row.is_run_member() && parent_seq != 0 && above.len() < MAX_RUN_EVENTS {
        let parent = get_event_row(db, session_id, parent_seq)?;
        if !parent.is_run_member() {
            break;
        }
        parent_seq = parent.parent_seq;
        above.push(parent);
    }
    above.reverse();
    above.extend(load_run(db, session_id, row)?);
    Ok(above)
}

/// The rows right after `seq` that go on with its run, at most a bite.
fn load_run_after(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Vec<EventRow>> {
    let sql = format!(
        "SELECT e.seq, e.parent_seq, e.is_branch, {COLUMNS}, {BODY}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq > ?2
          ORDER BY e.seq
          LIMIT ?3"
    );
    let rows = db.rows(
        &sql,
        &[session_id.as_str().into(), seq.into(), RUN_BITE.into()],
    )?;
    let mut run = Vec::new();
    let mut last_seq = seq;
    for row in &rows {
        let is_branch = row.integer(2)? == 1;
        let row = complete(db, session_id, EventRow::from_row(row)?)?;
        if is_branch || row.parent_seq != last_seq || !row.is_run_member() {
            break;
        }
        last_seq = row.seq;
        run.push(row);
    }
    Ok(run)
}

/// The messages that follow a message directly.
pub fn load_branches(db: &dyn Database, session_id: &Id, message_id: &Id) -> Result<Vec<Message>> {
    let message = find_message(db, session_id, message_id)?
        .ok_or_else(|| message_not_found("messageId", message_id))?;
    load_children(db, session_id, message.last_seq)?
        .into_iter()
        .map(|seq| message_from(db, session_id, get_event_row(db, session_id, seq)?))
        .collect()
}

/// The message that a path ends with.
pub fn message_at_leaf(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
) -> Result<Option<Message>> {
    let mut gatherer = Gatherer::default();
    let mut found = None;
    let columns = format!("{COLUMNS}, {BODY}");
    walk_path(db, session_id, leaf_seq, &columns, 1, &mut |row| {
        found = gatherer
            .take(complete(db, session_id, EventRow::from_row(&row)?)?)?
            .into_iter()
            .flatten()
            .next();
        Ok(if found.is_some() {
            Step::Stop
        } else {
            Step::On
        })
    })?;
    match found {
        Some(message) => Ok(Some(message)),
        None => gatherer.finish(),
    }
}
