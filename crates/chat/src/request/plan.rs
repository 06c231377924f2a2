//! Decides the changes that a chat request makes in the log. No client can forge the agent's
//! messages: from a client the log accepts only new user messages and answers. An answer counts if
//! its call waits for the client, and is stored inside the message that made the call. Everything
//! else in a request is the client's copy of the log, or is ignored.
//!
//! This module reads no storage: the log's state comes in as [`NamedMessage`].

use std::collections::{HashMap, HashSet};

use crate::request::answers::{ApprovalAnswer, CallAnswer, ClientAnswer};
use crate::request::{ChatRequest, ClientMessage, Trigger};
use base::action::Role;
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::log::MAX_EVENTS;

/// A stored message that the request names, or the newest of the current path.
#[derive(Clone, Debug)]
pub struct NamedMessage {
    pub id: String,
    pub is_users: bool,
    /// Calls that wait for the client. A tool that the server runs never waits for an
    /// output here: otherwise a client could forge that output. It may wait for answers to its
    /// questions, which clients also send as an output.
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
    /// The user is asked whether the tool may run.
    Approval { approval_id: String },
    /// The tool asks the user.
    Input,
}

/// The turn's position in the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnPosition {
    /// After the newest event of the session's current path.
    AtLeaf,
    /// After this message, even if other messages follow it already.
    After(String),
    /// As an alternative to this answer: after the event that the answer follows.
    AlternativeTo(String),
    /// As an alternative to the newest answer of the path.
    AlternativeToNewest,
    /// A continuation of this assistant message, whose calls the client answered.
    Within(String),
}

#[derive(Debug)]
pub struct RequestPlan<'a> {
    pub position: TurnPosition,
    /// The messages to append, in this order, before the model is called.
    pub new_user_messages: Vec<&'a ClientMessage>,
    /// A stored user message that was sent again under its id to be edited. Its text
    /// may be unchanged.
    pub edited: Option<&'a ClientMessage>,
    pub answers: Vec<Answered<ClientAnswer>>,
    pub approvals: Vec<Answered<ApprovalAnswer>>,
    /// Calls of the answered messages that still wait for the client. While there are
    /// any, the model can't continue.
    pub still_open: Vec<String>,
}

/// An answer, and the message whose call it answers.
#[derive(Debug)]
pub struct Answered<T> {
    pub message_id: String,
    pub answer: T,
    /// Whether the answer is in the request's last message. Answers in the messages before it may
    /// be part of the client's copy of the history.
    pub is_in_last_message: bool,
}

impl RequestPlan<'_> {
    /// Whether the request changes nothing in the log and only asks the model to
    /// continue.
    pub fn is_continuation(&self) -> bool {
        self.new_user_messages.is_empty()
            && self.edited.is_none()
            && self.answers.is_empty()
            && self.approvals.is_empty()
    }

    /// The messages whose calls were answered.
    pub fn answered_messages(&self) -> impl Iterator<Item = &str> {
        let answers = self.answers.iter().map(|answer| answer.message_id.as_str());
        let approvals = self.approvals.iter();
        answers.chain(approvals.map(|answer| answer.message_id.as_str()))
    }
}

/// The stored messages by id, since a request may name thousands.
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

/// `stored`: the messages of the request that the log has, and the newest message of
/// the session's current path. Their order is free, but the newest one is last.
pub fn plan<'a>(stored: &[NamedMessage], request: &'a ChatRequest) -> Result<RequestPlan<'a>> {
    let log = Log::new(stored);
    // The messages before a stored one are the client's past. If the log lacks one of
    // them, it was deleted there.
    let past = request
        .messages
        .iter()
        .rposition(|message| log.find(message.id.as_ref()).is_some())
        .map_or(0, |index| index + 1);
    let (past, rest) = request
        .messages
        .split_at_checked(past)
        .unwrap_or((&request.messages, &[]));
    let rest = if request.is_shown {
        without_others(rest)
    } else {
        rest
    };
    let newest_known = past.last();
    let newest_stored = newest_known.and_then(|message| log.find(message.id.as_ref()));

    let mut planned = RequestPlan {
        position: TurnPosition::AtLeaf,
        new_user_messages: new_messages(rest)?,
        edited: None,
        answers: Vec::new(),
        approvals: Vec::new(),
        still_open: Vec::new(),
    };
    planned
        .new_user_messages
        .iter()
        .try_for_each(|message| message.check_has_content())?;
    match &request.trigger {
        Trigger::Regenerate { message_id } => {
            let has_new = !planned.new_user_messages.is_empty();
            planned.position = regenerated(message_id.as_ref(), newest_stored, &log, has_new)?;
        }
        Trigger::Submit { message_id } => {
            if let Some(stored) = newest_stored {
                planned.position = TurnPosition::After(stored.id.clone());
            }
            let is_edited = rest.is_empty() && newest_stored.is_some_and(|stored| stored.is_users);
            planned.edited = newest_known.filter(|message| {
                is_edited
                    && message.role == Some(Role::User)
                    && message_id.is_some()
                    && message.id == *message_id
            });
            planned
                .edited
                .map_or(Ok(()), ClientMessage::check_has_content)?;
            plan_answers(&mut planned, &log, request);
        }
    }
    Ok(planned)
}

/// The user message that was sent again to be answered, under an id that the log has.
pub fn find_repeated<'a>(
    stored: &[NamedMessage],
    request: &'a ChatRequest,
    planned: &RequestPlan<'_>,
) -> Option<&'a ClientMessage> {
    let is_new = !planned.new_user_messages.is_empty() || planned.edited.is_some();
    if is_new || !matches!(request.trigger, Trigger::Submit { .. }) {
        return None;
    }
    let last = request.messages.last()?;
    let id = last.id.as_ref()?.as_str();
    let is_stored = stored
        .iter()
        .any(|stored| stored.is_users && stored.id == id);
    (is_stored && last.role == Some(Role::User)).then_some(last)
}

/// A page that switched to this session may still show the previous one and send its messages
/// along. If the list contains an exchange that this log lacks, only its newest message is new.
fn without_others(rest: &[ClientMessage]) -> &[ClientMessage] {
    let is_users = |message: &ClientMessage| message.role == Some(Role::User);
    let mut from_first = rest.iter().skip_while(|message| !is_users(message));
    if from_first.any(|message| message.role == Some(Role::Assistant)) {
        rest.get(rest.len() - 1..).unwrap_or_default()
    } else {
        rest
    }
}

/// The user messages that the log doesn't have, each id once.
fn new_messages(messages: &[ClientMessage]) -> Result<Vec<&ClientMessage>> {
    let mut ids = HashSet::new();
    let new: Vec<&ClientMessage> = messages
        .iter()
        .filter(|message| message.role == Some(Role::User))
        .filter(|message| message.id.as_ref().is_none_or(|id| ids.insert(id)))
        .collect();
    if new.len() > MAX_EVENTS {
        return Err(Error::invalid(
            "messages",
            format!("`messages` can have at most {MAX_EVENTS} new messages."),
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
        // The message to answer was never stored, because its send failed.
        (_, Some(stored)) if has_new => Ok(TurnPosition::After(stored.id.clone())),
        (_, None) if has_new => Ok(TurnPosition::AtLeaf),
        (Some(stored), _) if stored.is_users => Ok(TurnPosition::After(stored.id.clone())),
        (Some(stored), _) => Ok(TurnPosition::AlternativeTo(stored.id.clone())),
        (None, _) => match message_id {
            None => Ok(TurnPosition::AlternativeToNewest),
            Some(id) => Err(Error::new(
                Code::MessageNotFound,
                "This session has no message with the id in `messageId`. Without `messageId`, the \
                 newest answer is regenerated.",
            )
            .with("messageId", id.as_str())),
        },
    }
}

fn plan_answers(planned: &mut RequestPlan<'_>, log: &Log<'_>, request: &ChatRequest) {
    let mut answered: Vec<&NamedMessage> = Vec::new();
    let mut given: HashSet<String> = HashSet::new();
    for message in &request.messages {
        // On a socket, a continued message has an id that the client made, until the history is
        // sent again. Until then the call ids identify the message.
        let asks = |stored: &&NamedMessage| !stored.open.is_empty();
        let asking = log.find(message.id.as_ref()).or(log.newest).filter(asks);
        // If others wrote while the message was continued, the continuation is a message of its
        // own, which the client does not know yet.
        let is_in_last_message = request
            .messages
            .last()
            .is_some_and(|last| std::ptr::eq(last, message));
        let asking = asking.or_else(|| log.newest.filter(|_| is_in_last_message).filter(asks));
        let Some(asking) = asking else {
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
                CallAnswer::Tool(answer) => planned.answers.push(Answered {
                    message_id,
                    answer,
                    is_in_last_message,
                }),
                CallAnswer::Approval(answer) => planned.approvals.push(Answered {
                    message_id,
                    answer,
                    is_in_last_message,
                }),
            }
        }
    }
    planned.still_open = answered
        .iter()
        .flat_map(|stored| &stored.open)
        .map(|open| open.tool_call_id.clone())
        .filter(|id| !given.contains(id))
        .collect();
    // If the request also has new user messages, the turn follows those instead.
    if let (Some(asking), true) = (answered.last(), planned.new_user_messages.is_empty()) {
        planned.position = TurnPosition::Within(asking.id.clone());
    }
}

/// The newest message with a call that waits for this kind of answer.
pub fn find_asking<'s>(
    stored: &'s [NamedMessage],
    answer: &CallAnswer,
) -> Option<&'s NamedMessage> {
    let fits = |open: &OpenCall| {
        open.tool_call_id == answer.tool_call_id()
            && match (&open.awaits, answer) {
                (AwaitedAnswer::Output | AwaitedAnswer::Input, CallAnswer::Tool(_)) => true,
                (AwaitedAnswer::Approval { approval_id }, CallAnswer::Approval(answer)) => answer
                    .approval_id
                    .as_ref()
                    .is_none_or(|id| id == approval_id),
                (AwaitedAnswer::Output | AwaitedAnswer::Input, CallAnswer::Approval(_))
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
