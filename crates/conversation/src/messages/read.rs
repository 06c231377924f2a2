//! Reads single messages, by their id or by their position.

use super::run::{find_run, find_run_event, load_run_around, load_run_from};
use super::view::{Message, MessageGatherer};
use crate::log::find::find_seqs;
use crate::log::row::{EventRow, INLINE_COLUMNS, ShortRow, get_event_row};
use crate::messages::tree::children::load_children;
use crate::messages::tree::leaf::message_not_found;
use crate::messages::tree::path::{WalkStep, walk_path};
use base::budget::MAX_ANSWER_BYTES;
use base::database::{Database, Row};
use base::error::{Error, Result};
use base::ids::Id;

/// The message with this id. An event inside a run has no message of its own.
pub fn find_message(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<Message>> {
    let found = find_seqs(db, session_id, std::iter::once(id))?;
    let Some(seq) = found.get(id.as_str()) else {
        return Ok(None);
    };
    let row = get_event_row(db, session_id, *seq)?;
    if row.is_run_member() && !row.splits_run && row.parent_seq != 0 {
        let parent = find_run_event(db, session_id, row.parent_seq)?;
        if parent.is_some_and(|parent| parent.is_run_member) {
            return Ok(None);
        }
    }
    message_from(db, session_id, row).map(Some)
}

/// The message that shows the event with this id: the event's own, or the run that the
/// event is in.
pub fn find_message_around(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<Message>> {
    let found = find_seqs(db, session_id, std::iter::once(id))?;
    let Some(seq) = found.get(id.as_str()) else {
        return Ok(None);
    };
    let run = load_run_around(db, session_id, *seq)?;
    let Some(first) = run.events.first() else {
        return Ok(None);
    };
    let row = get_event_row(db, session_id, first.seq)?;
    message_from(db, session_id, row).map(Some)
}

/// The message that starts with `row`: a single event or a run. Fails for a message longer than an
/// answer.
pub fn message_from(db: &dyn Database, session_id: &Id, row: EventRow) -> Result<Message> {
    let mut rows = vec![row];
    if let Some(first) = rows.first().filter(|first| first.is_run_member())
        && let Some(first) = find_run_event(db, session_id, first.seq)?
    {
        let run = load_run_from(db, session_id, first)?;
        if run.is_too_long() {
            return Err(run.too_long());
        }
        for seq in run.seqs().skip(1) {
            rows.push(get_event_row(db, session_id, seq)?);
        }
    }
    let mut gatherer = MessageGatherer::default();
    let mut messages = Vec::new();
    for row in rows.into_iter().rev() {
        messages.extend(gatherer.add(row)?.into_iter().flatten());
    }
    messages.extend(gatherer.finish()?);
    messages
        .pop()
        .ok_or_else(|| Error::storage("a message without rows"))
}

/// The messages that directly follow a message. Fails if they are longer together than one answer.
pub fn load_branches(db: &dyn Database, session_id: &Id, message_id: &Id) -> Result<Vec<Message>> {
    let run = find_run(db, session_id, message_id)?
        .ok_or_else(|| message_not_found("messageId", message_id))?;
    let mut messages: Vec<Message> = Vec::new();
    let mut bytes = 0;
    for seq in load_children(db, session_id, run.last_seq())? {
        let message = message_from(db, session_id, get_event_row(db, session_id, seq)?)?;
        bytes += message.json.len();
        messages.push(message);
        if bytes > MAX_ANSWER_BYTES && messages.len() > 1 {
            return Err(too_many_branches(&messages, bytes));
        }
    }
    Ok(messages)
}

/// `some`: the branches that were read before the limit.
fn too_many_branches(some: &[Message], bytes: usize) -> Error {
    let what = format!(
        "The size of the first {} messages that follow this one",
        some.len()
    );
    let error = Error::payload_too_large(&what, MAX_ANSWER_BYTES, bytes);
    let advice = format!(
        "{} Read each by itself with `getMessage`; `loadEvents` with `afterSeq` shows their ids.",
        error.message
    );
    error.with_message(advice)
}

/// The event of a row with the columns of a [`ShortRow`], bodies included.
pub fn read_path_row(db: &dyn Database, session_id: &Id, row: &Row) -> Result<EventRow> {
    row.read::<ShortRow>()?.get(db, session_id)
}

/// The last message of a path.
pub fn message_at_leaf(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
) -> Result<Option<Message>> {
    let mut gatherer = MessageGatherer::default();
    let mut found = None;
    walk_path(
        db,
        session_id,
        leaf_seq,
        &INLINE_COLUMNS,
        1,
        &mut |_, row| {
            found = gatherer
                .add(read_path_row(db, session_id, row)?)?
                .into_iter()
                .flatten()
                .next();
            Ok(if found.is_some() {
                WalkStep::Stop
            } else {
                WalkStep::On
            })
        },
    )?;
    match found {
        Some(message) => Ok(Some(message)),
        None => gatherer.finish(),
    }
}
