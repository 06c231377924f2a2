//! Replaces messages. An update replaces all events of a message's run, and records the
//! change in the feed.

use super::delete::{record_boundaries, record_deleted, record_updated};
use super::parse::NewMessage;
use super::read::message_from;
use super::run::{Run, find_run};
use super::same::MessageDigest;
use super::view::{Message, MessageGatherer};
use crate::log::boundary;
use crate::log::media;
use crate::log::note::Note;
use crate::log::rewrite::{rewrite_bodies, rewrite_note};
use crate::log::row::EventRow;
use crate::log::row::get_event_row;
use crate::log::row_draft::RowDraft;
use crate::log::tip::get_tip;
use crate::log::tokens;
use crate::log::totals::begin_messages_below;
use crate::messages::tree::delete::delete_seqs;
use crate::session::activity;
use crate::session::last_turns;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;

/// A message that was replaced.
pub struct UpdatedMessage {
    pub message: Message,
    /// Whether no other message changed. If `false`, the message was a run, and the events
    /// that continued it may now be a message of their own.
    pub is_alone: bool,
}

/// Replaces a message. `None`: no message has this id. If the message equals the stored
/// one, nothing is written. The message's own note names the writer's authority; the stored
/// message gets the narrower of that and the previous authority.
pub fn update_message(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    message: &NewMessage,
) -> Result<Option<UpdatedMessage>> {
    let id = message.id.as_ref().ok_or_else(|| {
        Error::invalid(
            "message.id",
            "`message.id` is missing: it identifies the message to update.",
        )
    })?;
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let Some(run) = find_run(db, session_id, id)? else {
            return Ok(None);
        };
        let first_seq = run.seqs().next().unwrap_or(0);
        let first = get_event_row(db, session_id, first_seq)?;
        let (parent_seq, stored_at) = (first.parent_seq, first.created_at);
        let (is_run, media) = (first.is_run_member(), first.media.clone());
        // No caller can have read a message that exceeds the longest answer, so none sends
        // it back unchanged. An unequal message is dropped before its replacement is
        // written.
        if !run.is_too_long() {
            let stored = message_from(db, session_id, first)?;
            if has_same_content(&stored, message)? {
                return Ok(Some(UpdatedMessage {
                    message: stored,
                    is_alone: true,
                }));
            }
        }
        let note = joined_note(&run, message)?;
        last_turns::fold_ended(db, session_id)?;
        let rest: Vec<i64> = run.seqs().skip(1).collect();
        let deleted = delete_seqs(db, host, session_id, &tip, &rest)?;
        let created_at = message.created_at.unwrap_or(stored_at);
        let cut = media::cut(&message.text.fields);
        let tokens = tokens::of_message(message.action, &message.content, &message.text.fields);
        let draft = RowDraft {
            content: Some(&message.content),
            message_dated: u8::from(message.text.is_dated),
            created_at,
            note: note.as_deref(),
            ..RowDraft::of_message(first_seq, id.as_str(), message.action, &cut, tokens)
        };
        rewrite_bodies(db, session_id, &draft.fit("message")?, media.as_deref())?;
        record_updated(db, host, session_id, tip.last_seq(), &[id.as_str()])?;
        record_deleted(db, host, session_id, tip.last_seq(), &deleted)?;
        if is_run {
            // The event is no longer in a run, so no run is split below it or next to it.
            begin_messages_below(db, session_id, first_seq)?;
            let changed =
                boundary::update_boundaries(db, session_id, [first_seq, parent_seq], [first_seq])?;
            record_boundaries(db, host, session_id, tip.last_seq(), &changed)?;
        }
        // The row was just written, so its values are known without reading it.
        let row = EventRow {
            seq: first_seq,
            parent_seq,
            id: id.as_str().to_owned(),
            action: message.action.into(),
            tool: None,
            metadata: None,
            is_dated: message.text.is_dated,
            created_at,
            sliced_bytes: 0,
            note: None,
            media: cut.positions,
            content: String::new(),
            message: Some(message.text.fields.clone()),
            splits_run: false,
        };
        let [_, message] = MessageGatherer::default().add(row)?;
        let message = message.ok_or_else(|| Error::storage("a message without a row"))?;
        Ok(Some(UpdatedMessage {
            message,
            is_alone: !is_run,
        }))
    })
}

/// The note of a message that replaces this run.
fn joined_note(run: &Run, message: &NewMessage) -> Result<Option<String>> {
    let mut note = Note::default();
    for event in &run.events {
        note = note.joined(&event.note()?);
    }
    let last = message.note.as_ref();
    Ok(last.map_or(note.clone(), |last| note.joined(last)).json())
}

/// Compares values, ignoring a date that we added: clients send back the messages that they
/// read.
fn has_same_content(stored: &Message, message: &NewMessage) -> Result<bool> {
    let digest_of = |json: &str| {
        MessageDigest::read(json).ok_or_else(|| Error::corrupt_row(&stored.id, "message"))
    };
    let mut before = digest_of(&stored.json)?;
    let after = digest_of(&["{", &message.text.fields, "}"].concat())?;
    let date = before.date();
    let same_date = message.text.is_dated
        || message
            .created_at
            .is_none_or(|created_at| date == Some(created_at));
    if date.is_some() && !message.text.is_dated {
        before = before.without_date();
    }
    Ok(same_date && before.is_same(&after))
}

/// Replaces the note of a message's event. The note is part of the message, so the feed
/// records an update. Must run in a transaction.
pub fn change_note(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    message_id: &str,
    seq: i64,
    note: &Note,
) -> Result<()> {
    let last_seq = get_tip(db, session_id)?.last_seq();
    rewrite_note(db, session_id, seq, note.json().as_deref())?;
    record_updated(db, host, session_id, last_seq, &[message_id])
}

pub fn touch(db: &dyn Database, host: &dyn Host, session_id: &Id) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions SET updated_at = max(updated_at, ?2) WHERE id = ?1",
        &[session_id.as_str().into(), host.now_ms().into()],
    )?;
    activity::record(db, session_id)
}
