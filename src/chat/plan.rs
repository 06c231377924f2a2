//! What becomes of a chat request in the log. Nobody forges what the agent said:
//! of all that a client sends, the log takes new messages of the user, and
//! answers to calls that it knows to be waiting for the client, inside the
//! message that asked. Everything else is the client's copy of what is stored,
//! or is nothing.
//!
//! Pure: the log's side of the story comes in as [`Stored`].

use super::answers::{Answer, ApprovalAnswer, ClientAnswer};
use super::request::{ChatMessage, ChatRequest, Role, Trigger};
use crate::error::{Code, Error, Result};
use crate::log::MAX_EVENTS;

/// A message of the log that the request names, or the newest of its path.
#[derive(Clone, Debug)]
pub struct Stored {
    pub id: String,
    pub is_users: bool,
    /// Its calls that wait for the client. A call of a tool that runs elsewhere is
    /// never among them, else a client could say what that tool gave back.
    pub open: Vec<OpenCall>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    pub tool_call_id: String,
    pub awaits: Awaits,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Awaits {
    /// The client runs the tool.
    Output,
    /// The user is asked whether it may run.
    Approval { approval_id: String },
}

/// Where the turn stands in the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// After the newest event of the path that the session follows.
    AtLeaf,
    /// After this message, whatever else follows it.
    After(String),
    /// Beside this answer: after what it follows.
    Beside(String),
    /// Beside the newest answer of the path.
    BesideNewest,
    /// Further in this assistant's message, which asked the client.
    Within(String),
}

#[derive(Debug)]
pub struct Accepted<'a> {
    pub place: Place,
    /// To be appended, in this order, before the model is called.
    pub new_user_messages: Vec<&'a ChatMessage>,
    /// A stored message of the user's that was sent again under its id to be
    /// changed. It may be unchanged.
    pub edited: Option<&'a ChatMessage>,
    pub answers: Vec<Answered<ClientAnswer>>,
    pub approvals: Vec<Answered<ApprovalAnswer>>,
    /// Calls of the messages that were answered that still wait for the client:
    /// while there are any, the model can't go on.
    pub still_open: Vec<String>,
}

/// An answer and the message that asked for it.
#[derive(Debug)]
pub struct Answered<T> {
    pub message_id: String,
    pub answer: T,
}

impl Accepted<'_> {
    /// Nothing for the log: the model is asked to go on from where things stand.
    pub fn is_continuation(&self) -> bool {
        self.new_user_messages.is_empty()
            && self.edited.is_none()
            && self.answers.is_empty()
            && self.approvals.is_empty()
    }
}

/// `stored`: those of the request's messages that the log has, and the newest
/// message of the path that the session follows, in any order but that newest
/// one last.
pub fn plan<'a>(stored: &[Stored], request: &'a ChatRequest) -> Result<Accepted<'a>> {
    let find = |id: &str| stored.iter().find(|stored| stored.id == id);
    let find_sent = |message: &ChatMessage| message.id.as_ref().and_then(|id| find(id.as_str()));

    // What stands before a stored message was the client's past already: a
    // message of it that is gone from the log was deleted there.
    let last_stored = request
        .messages
        .iter()
        .rposition(|message| find_sent(message).is_some());
    let (past, rest) = request
        .messages
        .split_at(last_stored.map_or(0, |index| index + 1));
    let new_user_messages: Vec<&ChatMessage> = rest
        .iter()
        .filter(|message| message.role == Role::User)
        .collect();
    if new_user_messages.len() > MAX_EVENTS {
        return Err(Error::invalid(
            "messages",
            format!("`messages` must hold at most {MAX_EVENTS} new messages."),
        ));
    }
    let newest_stored = past.last().and_then(find_sent);

    let mut accepted = Accepted {
        place: Place::AtLeaf,
        new_user_messages,
        edited: None,
        answers: Vec::new(),
        approvals: Vec::new(),
        still_open: Vec::new(),
    };
    match &request.trigger {
        Trigger::Regenerate { message_id } => {
            accepted.place = regenerated(
                message_id.as_ref().map(|id| id.as_str()),
                newest_stored,
                &find,
                !accepted.new_user_messages.is_empty(),
            )?;
        }
        Trigger::Submit { message_id } => {
            if let Some(stored) = newest_stored {
                accepted.place = Place::After(stored.id.clone());
            }
            accepted.edited = past.last().filter(|message| {
                rest.is_empty()
                    && message.id == *message_id
                    && newest_stored.is_some_and(|stored| stored.is_users)
            });
            take_answers(&mut accepted, stored, request);
        }
    }
    Ok(accepted)
}

fn regenerated<'a>(
    message_id: Option<&str>,
    newest_stored: Option<&Stored>,
    find: &dyn Fn(&str) -> Option<&'a Stored>,
    has_new: bool,
) -> Result<Place> {
    let named = message_id.and_then(find);
    Ok(match (named, newest_stored) {
        // What is to be answered was never stored: a send that failed.
        (_, Some(stored)) if has_new => Place::After(stored.id.clone()),
        (None, None) if has_new => Place::AtLeaf,
        (Some(stored), _) | (None, Some(stored)) => {
            if stored.is_users {
                Place::After(stored.id.clone())
            } else {
                Place::Beside(stored.id.clone())
            }
        }
        (None, None) => match message_id {
            None => Place::BesideNewest,
            Some(id) => {
                return Err(Error::new(
                    Code::MessageNotFound,
                    "There is no such message in this session to answer anew. Without `messageId`, the newest answer is meant.",
                )
                .with("messageId", id));
            }
        },
    })
}

fn take_answers(accepted: &mut Accepted<'_>, stored: &[Stored], request: &ChatRequest) {
    let mut answered: Vec<&Stored> = Vec::new();
    let mut given: Vec<String> = Vec::new();
    for message in &request.messages {
        let known = message
            .id
            .as_ref()
            .and_then(|id| stored.iter().find(|stored| stored.id == id.as_str()));
        // On a socket a continued message bears an id of the client's own until
        // the history is sent again: then the calls tell which it is.
        let candidates: &[Stored] = match known {
            Some(known) => std::slice::from_ref(known),
            None => stored.last().map_or(&[], std::slice::from_ref),
        };
        for answer in message.answers() {
            let id = answer.tool_call_id().to_owned();
            let Some(asking) = find_asking(candidates, &answer) else {
                continue;
            };
            if given.contains(&id) {
                continue;
            }
            given.push(id);
            if !answered.iter().any(|stored| stored.id == asking.id) {
                answered.push(asking);
            }
            let message_id = asking.id.clone();
            match answer {
                Answer::Tool(answer) => accepted.answers.push(Answered { message_id, answer }),
                Answer::Approval(answer) => {
                    accepted.approvals.push(Answered { message_id, answer });
                }
            }
        }
    }
    accepted.still_open = answered
        .iter()
        .flat_map(|stored| &stored.open)
        .map(|open| open.tool_call_id.clone())
        .filter(|id| !given.contains(id))
        .collect();
    // With words of the user's beside the answers, those go on after the message.
    if let (Some(asking), true) = (answered.last(), accepted.new_user_messages.is_empty()) {
        accepted.place = Place::Within(asking.id.clone());
    }
}

/// The newest message that waits for this answer, of this kind.
pub fn find_asking<'s>(stored: &'s [Stored], answer: &Answer) -> Option<&'s Stored> {
    let fits = |open: &OpenCall| {
        open.tool_call_id == answer.tool_call_id()
            && match (&open.awaits, answer) {
                (Awaits::Output, Answer::Tool(_)) => true,
                (Awaits::Approval { approval_id }, Answer::Approval(answer)) => answer
                    .approval_id
                    .as_ref()
                    .is_none_or(|id| id == approval_id),
                (Awaits::Output, Answer::Approval(_))
                | (Awaits::Approval { .. }, Answer::Tool(_)) => false,
            }
    };
    stored
        .iter()
        .rev()
        .find(|stored| stored.open.iter().any(fits))
}

#[cfg(test)]
mod tests;
