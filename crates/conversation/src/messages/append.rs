//! Appends a message: one event with the message's text as `content`, and the message
//! itself in another column.

use super::parse::NewMessage;
use super::view::{Message, MessageGatherer};
use crate::log::append::{AppendOutcome, FindDue, FollowUp, Parent, append_and_schedule_learning};
use crate::log::event::NewEvent;
use crate::log::row::EventRow;
use crate::log::row::get_event_row;
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::Count;

/// Whether the message was written, and its current state.
pub struct UpsertOutcome {
    pub inserted: bool,
    pub message: Message,
    pub follow_up: FollowUp,
}

/// Appends messages, all of them or none, each after the one before it.
pub fn append_messages(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    messages: Vec<NewMessage>,
    parent: (&Parent, Option<&Option<Id>>),
    find_due: FindDue<'_>,
) -> Result<AppendOutcome> {
    let events: Vec<NewEvent> = messages.into_iter().map(to_event).collect();
    append_and_schedule_learning(db, host, session_id, &events, parent, find_due)
}

pub fn to_event(message: NewMessage) -> NewEvent {
    NewEvent {
        id: message.id,
        content: Some(message.content),
        created_at: message.created_at.map(Count),
        message: Some(message.text),
        note: message.note,
        ..NewEvent::new(message.action)
    }
}

pub fn append_message(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    message: NewMessage,
    parent: (&Parent, Option<&Option<Id>>),
    find_due: FindDue<'_>,
) -> Result<UpsertOutcome> {
    let given_at = message.created_at;
    let events = [to_event(message)];
    let outcome = append_and_schedule_learning(db, host, session_id, &events, parent, find_due)?;
    let created_at = given_at.unwrap_or(outcome.written_at);
    let ([mut event], Some(appended)) = (events, outcome.events.into_iter().next()) else {
        return Err(Error::storage("an append without an outcome"));
    };
    // The row's message contains the text, so a long `content` is not kept twice.
    event.content = None;
    let row = if appended.inserted {
        // The row was just written, so its values are known without reading it.
        let text = event.message;
        EventRow {
            seq: appended.seq,
            parent_seq: 0,
            id: appended.id,
            action: event.action.into(),
            tool: None,
            metadata: None,
            is_dated: text.as_ref().is_some_and(|text| text.is_dated),
            created_at,
            sliced_bytes: 0,
            note: None,
            media: None,
            content: String::new(),
            message: text.map(|text| text.fields),
            splits_run: false,
        }
    } else {
        get_event_row(db, session_id, appended.seq)?
    };
    let message = if row.is_run_member() {
        super::read::message_from(db, session_id, row)?
    } else {
        let [_, message] = MessageGatherer::default().add(row)?;
        message.ok_or_else(|| Error::storage("a message without a row"))?
    };
    Ok(UpsertOutcome {
        inserted: appended.inserted,
        message,
        follow_up: outcome.follow_up,
    })
}
