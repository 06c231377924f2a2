//! What becomes of a chat request in the log. Nobody forges what the agent said:
//! of all that a client sends, the log takes new messages of the user, and
//! answers to calls that it knows to be waiting for the client, inside the
//! message that asked. Everything else is the client's copy of what is stored,
//! or is nothing.
//!
//! Pure: the log's side of the story comes in as [`NamedMessage`].

use std::collections::{HashMap, HashSet};

use super::answers::{ApprovalAnswer, CallAnswer, ClientAnswer};
use super::request::{ChatRequest, ClientMessage, ClientRole, Trigger};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::log::MAX_EVENTS;

/// A message of the log that the request names, or the newest of its path.
#[derive(Clone, Debug)]
pub struct NamedMessage {
    pub id: String,
    pub is_users: bool,
    /// Its calls that wait for the client. A call of a tool that runs elsewhere is
    /// never among them, else a client could say what that tool gave back.
    pub open: Vec<OpenCall>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    pub tool_call_id: String,
    pub awaits: AwaitedAnswer,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AwaitedAnswer {
    /// The client runs the tool.
    Output,
    /// The user is asked whether it may run.
    Approval { approval_id: String },
}

/// Where the turn stands in the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnPosition {
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
    pub place: TurnPosition,
    /// To be appended, in this order, before the model is called.
    pub new_user_messages: Vec<&'a ClientMessage>,
    /// A stored message of the user's that was sent again under its id to be
    /// changed. It may be unchanged.
    pub edited: Option<&'a ClientMessage>,
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

impl Accepted<'_> {
    /// The messages whose calls were answered.
    pub fn answered_messages(&self) -> impl Iterator<Item = &str> {
        let answers = self.answers.iter().map(|answer| answer.message_id.as_str());
        let approvals = self.approvals.iter();
        answers.chain(approvals.map(|answer| answer.message_id.as_str()))
    }
}

/// What the log has, by id: a history of thousands is looked up message by message.
struct Log<'s> {
    by_id: HashMap<&'s str, &'s NamedMessage>,
    newest: Option<&'s NamedMessage>,
}

impl<'s> Log<'s> {
    fn new(stored: &'s [NamedMessage]) -> Self {
        Self {
            by_id: stored
                .iter()
                .map(|stored| (stored.id.as_str(), stored))
                .collect(),
            newest: stored.last(),
        }
    }

    fn find(&self, id: Option<&Id>) -> Option<&'s NamedMessage> {
        self.by_id.get(id?.as_str()).copied()
    }
}

/// `stored`: those of the request's messages that the log has, and the newest
/// message of the path that the session follows, in any order but that newest
/// one last.
pub fn plan<'a>(stored: &[NamedMessage], request: &'a ChatRequest) -> Result<Accepted<'a>> {
    let log = Log::new(stored);
    // What stands before a stored message was the client's past already: a
    // message of it that is gone from the log was deleted there.
    let past = request
        .messages
        .iter()
        .rposition(|message| log.find(message.id.as_ref()).is_some())
        .map_or(0, |index| index + 1);
    let (past, rest) = request.messages.split_at(past);
    let newest_known = past.last();
    let newest_stored = newest_known.and_then(|message| log.find(message.id.as_ref()));

    let mut accepted = Accepted {
        place: TurnPosition::AtLeaf,
        new_user_messages: new_messages(rest)?,
        edited: None,
        answers: Vec::new(),
        approvals: Vec::new(),
        still_open: Vec::new(),
    };
    match &request.trigger {
        Trigger::Regenerate { message_id } => {
            let has_new = !accepted.new_user_messages.is_empty();
            accepted.place = regenerated(message_id.as_ref(), newest_stored, &log, has_new)?;
        }
        Trigger::Submit { message_id } => {
            if let Some(stored) = newest_stored {
                accepted.place = TurnPosition::After(stored.id.clone());
            }
            let is_edited = rest.is_empty() && newest_stored.is_some_and(|stored| stored.is_users);
            accepted.edited = newest_known.filter(|message| {
                is_edited
                    && message.role == ClientRole::User
                    && message_id.is_some()
                    && message.id == *message_id
            });
            take_answers(&mut accepted, &log, request);
        }
    }
    Ok(accepted)
}

/// The user's messages among those that the log doesn't have, each id once.
fn new_messages(messages: &[ClientMessage]) -> Result<Vec<&ClientMessage>> {
    let mut ids = HashSet::new();
    let new: Vec<&ClientMessage> = messages
        .iter()
        .filter(|message| message.role == ClientRole::User)
        .filter(|message| message.id.as_ref().is_none_or(|id| ids.insert(id)))
        .collect();
    if new.len() > MAX_EVENTS {
        return Err(Error::invalid(
            "messages",
            format!("`messages` must hold at most {MAX_EVENTS} new messages."),
        ));
    }
    Ok(new)
}

fn regenerated(
    message_id: Option<&Id>,
    newest_stored: Option<&NamedMessage>,
    log: &Log<'_>,
    has_new: bool,
) -> Result<TurnPosition> {
    match (log.find(message_id).or(newest_stored), newest_stored) {
        // What is to be answered was never stored: a send that failed.
        (_, Some(stored)) if has_new => Ok(TurnPosition::After(stored.id.clone())),
        (_, None) if has_new => Ok(TurnPosition::AtLeaf),
        (Some(stored), _) if stored.is_users => Ok(TurnPosition::After(stored.id.clone())),
        (Some(stored), _) => Ok(TurnPosition::Beside(stored.id.clone())),
        (None, _) => match message_id {
            None => Ok(TurnPosition::BesideNewest),
            Some(id) => Err(Error::new(
                Code::MessageNotFound,
                "There is no such message in this session to answer anew. Without `messageId`, the newest answer is meant.",
            )
            .with("messageId", id.as_str())),
        },
    }
}

fn take_answers(accepted: &mut Accepted<'_>, log: &Log<'_>, request: &ChatRequest) {
    let mut answered: Vec<&NamedMessage> = Vec::new();
    let mut given: HashSet<String> = HashSet::new();
    for message in &request.messages {
        // On a socket a continued message bears an id of the client's own until
        // the history is sent again: then the calls tell which it is.
        let asking = log.find(message.id.as_ref()).or(log.newest);
        let Some(asking) = asking.filter(|stored| !stored.open.is_empty()) else {
            continue;
        };
        for answer in message.answers() {
            let id = answer.tool_call_id().to_owned();
            if find_asking(std::slice::from_ref(asking), &answer).is_none() || !given.insert(id) {
                continue;
            }
            if !answered.iter().any(|stored| stored.id == asking.id) {
                answered.push(asking);
            }
            let message_id = asking.id.clone();
            match answer {
                CallAnswer::Tool(answer) => accepted.answers.push(Answered { message_id, answer }),
                CallAnswer::Approval(answer) => {
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
        accepted.place = TurnPosition::Within(asking.id.clone());
    }
}

/// The newest message that waits for this answer, of this kind.
pub fn find_asking<'s>(
    stored: &'s [NamedMessage],
    answer: &CallAnswer,
) -> Option<&'s NamedMessage> {
    let fits = |open: &OpenCall| {
        open.tool_call_id == answer.tool_call_id()
            && match (&open.awaits, answer) {
                (AwaitedAnswer::Output, CallAnswer::Tool(_)) => true,
                (AwaitedAnswer::Approval { approval_id }, CallAnswer::Approval(answer)) => answer
                    .approval_id
                    .as_ref()
                    .is_none_or(|id| id == approval_id),
                (AwaitedAnswer::Output, CallAnswer::Approval(_))
                | (AwaitedAnswer::Approval { .. }, CallAnswer::Tool(_)) => false,
            }
    };
    stored
        .iter()
        .rev()
        .find(|stored| stored.open.iter().any(fits))
}

#[cfg(test)]
mod tests;
