//! The stored messages that a chat request names, and the newest message of the path
//! that the session follows. [`crate::request::plan`] compares the request with these messages.

use std::collections::HashSet;

use crate::request::open_calls::open_calls;
use crate::request::plan::NamedMessage;
use crate::request::{ChatRequest, ClientMessage, Trigger};
use access::MemoryScope;
use base::action::Action;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject};
use conversation::log::find::find_seqs;
use conversation::log::tip::get_tip;
use conversation::messages::parse::{MessageSource, parse_message};
use conversation::messages::read::find_message_around;
use conversation::messages::run::{
    RunEvent, find_newest_end, get_run_event, load_continuations, load_run_around,
};

/// Messages of a request that are looked up at once, newest first. A client sends all
/// messages that it shows. Messages before a stored message are history.
const LOOKUP: usize = 64;

/// Messages of a request whose answers are compared with the log.
const MAX_ANSWERING: usize = 8;

/// A stored message that a request may continue, answer or replace.
pub struct KnownMessage {
    pub stored: NamedMessage,
    /// The message's events, without their contents.
    pub rows: Vec<RunEvent>,
    /// The events with which the message's run continues in other messages, if the run is split.
    /// Results of the message's calls may be among them.
    pub continuations: Vec<RunEvent>,
    /// Events up to this one were imported or copied by a fork.
    pub copied_seq: i64,
}

impl KnownMessage {
    /// The narrowest scope of the models that wrote the message.
    pub fn memory_scope(&self) -> Result<MemoryScope> {
        let mut memory_scope = MemoryScope::Agent;
        for row in &self.rows {
            memory_scope = memory_scope.min(row.note()?.memory_scope);
        }
        Ok(memory_scope)
    }
}

pub fn find_known<'k>(known: &'k [KnownMessage], id: &str) -> Option<&'k KnownMessage> {
    known.iter().find(|known| known.stored.id == id)
}

/// Rejects another message under the id of a stored one: its sender would take an answer to the
/// stored text for one to the new text. `hint` names an alternative.
pub fn check_repeated(
    db: &dyn Database,
    session_id: &Id,
    message: &ClientMessage,
    hint: &str,
) -> Result<()> {
    let text_of = |message: &JsonObject| {
        let parsed = parse_message(message, MessageSource::Server, &|| Ok(&[]));
        parsed.map(|message| message.content)
    };
    let Some(id) = &message.id else {
        return Ok(());
    };
    let Some(stored) = find_message_around(db, session_id, id)? else {
        return Ok(());
    };
    if text_of(&json::parse(stored.json.as_bytes())?)? == text_of(&message.text)? {
        return Ok(());
    }
    Err(Error::new(
        Code::AlreadyExists,
        format!("This session already has a message with this id and a different text. {hint}"),
    )
    .with("id", id.as_str()))
}

/// The newest stored messages that the request names. The last of the list is the newest
/// message of the path that the session follows.
pub fn load_known(
    db: &dyn Database,
    session_id: &Id,
    request: &ChatRequest,
) -> Result<Vec<KnownMessage>> {
    let mut ids: Vec<&Id> = request.message_ids().collect();
    ids.reverse();
    let answering = answering(request);
    let mut seqs: Vec<i64> = Vec::new();
    for some in ids.chunks(LOOKUP) {
        let found = find_seqs(db, session_id, some.iter().copied())?;
        // The request continues from the newest stored message. An older message is
        // read only if it answers a call.
        let newest = some.iter().find(|id| found.contains_key(id.as_str()));
        let named = some.iter().filter(|id| answering.contains(id.as_str()));
        let wanted = newest.into_iter().chain(named);
        seqs.extend(wanted.filter_map(|id| found.get(id.as_str()).copied()));
        if !found.is_empty() {
            break;
        }
    }
    seqs.sort();
    seqs.dedup();
    let tip = get_tip(db, session_id)?;
    seqs.extend(tip.leaf.map(|leaf| leaf.seq));
    let mut known: Vec<KnownMessage> = Vec::new();
    for seq in seqs {
        let Some(message) = load_message(db, session_id, seq, tip.copied_seq)? else {
            continue;
        };
        known.retain(|known| known.stored.id != message.stored.id);
        known.push(message);
    }
    Ok(known)
}

/// The newest message of the path that the session follows.
pub fn load_newest(db: &dyn Database, session_id: &Id) -> Result<Vec<KnownMessage>> {
    let tip = get_tip(db, session_id)?;
    let seq = tip.leaf.map(|leaf| leaf.seq);
    seq.into_iter()
        .filter_map(|seq| load_message(db, session_id, seq, tip.copied_seq).transpose())
        .collect()
}

/// The message that has this event.
pub fn load_message(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    copied_seq: i64,
) -> Result<Option<KnownMessage>> {
    let rows = load_run_around(db, session_id, seq)?.events;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Ok(None);
    };
    let continuations = if last.is_run_member {
        load_continuations(db, session_id, last.seq)?
    } else {
        Vec::new()
    };
    Ok(Some(KnownMessage {
        stored: NamedMessage {
            id: first.id.clone(),
            is_users: first.action == Action::UserMessage,
            open: open_calls(&rows, &continuations, copied_seq)?,
        },
        rows,
        continuations,
        copied_seq,
    }))
}

/// The ids of the messages whose calls the request may answer: the newest few messages
/// with answers, and the message that the request names.
fn answering(request: &ChatRequest) -> HashSet<&str> {
    let named = match &request.trigger {
        Trigger::Submit { message_id } | Trigger::Regenerate { message_id } => message_id,
    };
    let holding = request
        .messages
        .iter()
        .rev()
        .take(LOOKUP)
        .filter(|message| !message.answers().is_empty())
        .take(MAX_ANSWERING);
    holding
        .filter_map(|message| message.id.as_ref())
        .chain(named)
        .map(Id::as_str)
        .collect()
}

/// The id of the session's leaf; `None`: the session has no events.
pub fn find_leaf_id(db: &dyn Database, session_id: &Id) -> Result<Option<Id>> {
    let leaf = get_tip(db, session_id)?.leaf;
    leaf.map(|leaf| Id::parse(leaf.id).map_err(Error::storage))
        .transpose()
}

/// The id of the newest event that a message has now; for an unknown message, the id of
/// the leaf.
pub fn find_last_id(db: &dyn Database, session_id: &Id, message_id: &str) -> Result<Option<Id>> {
    match find_last_seq(db, session_id, message_id)? {
        Some(seq) => event_id(db, session_id, seq).map(Some),
        None => find_leaf_id(db, session_id),
    }
}

/// The id of the event that an answer to a message's calls follows: the message's newest event, or
/// the newest one with which its run continues.
pub fn find_answers_end(
    db: &dyn Database,
    session_id: &Id,
    message_id: &str,
) -> Result<Option<Id>> {
    match find_last_seq(db, session_id, message_id)? {
        Some(seq) => event_id(db, session_id, find_newest_end(db, session_id, seq)?).map(Some),
        None => find_leaf_id(db, session_id),
    }
}

fn find_last_seq(db: &dyn Database, session_id: &Id, message_id: &str) -> Result<Option<i64>> {
    let id = Id::parse(message_id.to_owned()).map_err(Error::storage)?;
    let found = find_seqs(db, session_id, std::iter::once(&id))?;
    found
        .get(message_id)
        .map(|seq| Ok(load_run_around(db, session_id, *seq)?.last_seq()))
        .transpose()
}

/// The id of an event.
pub fn event_id(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Id> {
    Id::parse(get_run_event(db, session_id, seq)?.id).map_err(Error::storage)
}
