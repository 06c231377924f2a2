//! Operations that write a session's messages: append, replace, delete.

use crate::json_schema::JsonSchema;
use std::cell::OnceCell;

use serde::{Deserialize, Serialize};

use super::message_reads::UiMessage;
use super::message_reads::or_null;
use crate::limits::EVENTS_BODY_BYTES;
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::operations::compaction::Growth;
use crate::operations::receipts::{admit_purge, issue_of};
use access::{Effect, Needs, permit_role};
use base::action::Action;
use base::error::Result;
use base::ids::Id;
use base::json::{JsonObject, list, nullable};
use chat::request::check_has_content;
use conversation::log::MAX_EVENTS;
use conversation::log::append::Parent;
use conversation::log::find::find_action;
use conversation::log::note::Note;
use conversation::messages::append::append_message;
use conversation::messages::change::update_message;
use conversation::messages::delete::delete_messages;
use conversation::messages::parse::{MessageSource, NewMessage, parse_message};
use conversation::messages::view::Message;
use lifecycle::clear::clear_messages;
use lifecycle::purge::purge_messages;
use lifecycle::receipt::Receipt;
use store::config::load_config;

#[derive(Deserialize, JsonSchema)]
pub struct AppendedMessage {
    /// `false`: the session already had a message with this id.
    pub inserted: bool,
    pub message: UiMessage,
}

/// Appends a message as one event, after the leaf or after `parentId`.
///
/// If the session already has the message's id, nothing is written.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppendMessage {
    session_id: Id,
    message: JsonObject,
    /// The event that the message follows. Default: the leaf. `null`: no event, so that
    /// the message is a root.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    parent_id: Option<Option<Id>>,
    /// With `client`, reserved metadata keys and provider metadata are removed.
    #[serde(default)]
    source: MessageSource,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    expected_leaf_id: Option<Option<Id>>,
}

/// The position of a new message.
struct MessagePosition {
    session_id: Id,
    parent_id: Option<Option<Id>>,
    expected_leaf_id: Option<Option<Id>>,
}

impl AppendMessage {
    /// The message to write, and its position. Drops the text that was sent, so that a long
    /// message is in memory only once.
    fn split(self, agent: &Agent<'_>) -> Result<(MessagePosition, NewMessage)> {
        let message = MessageParser::of(agent, self.source).parse(&self.message)?;
        if message.action == Action::UserMessage && message.content.trim().is_empty() {
            check_has_content(&self.message)?;
        }
        let position = MessagePosition {
            session_id: self.session_id,
            parent_id: self.parent_id,
            expected_leaf_id: self.expected_leaf_id,
        };
        Ok((position, message))
    }
}

fn append(agent: &Agent<'_>, position: MessagePosition, message: NewMessage) -> Result<Reply> {
    let growth = Growth::of(agent);
    let appended = append_message(
        agent.db,
        agent.host,
        &position.session_id,
        message,
        (
            &Parent::from_field(position.parent_id),
            position.expected_leaf_id.as_ref(),
        ),
        &|stored| growth.find_due(stored),
    )?;
    let reply = appended_reply(appended.inserted, &appended.message);
    Ok(if appended.inserted {
        growth.mark(reply, &position.session_id, &appended.follow_up)
    } else {
        reply
    })
}

fn appended_reply(inserted: bool, message: &Message) -> Reply {
    let head = if inserted {
        r#"{"inserted":true,"message":"#
    } else {
        r#"{"inserted":false,"message":"#
    };
    Reply::text([head, &message.json, "}"].concat())
}

/// Parses the messages of a request for its caller. A caller who may not write the agent's messages
/// may not set the fields of a server either.
pub(super) struct MessageParser<'a> {
    agent: &'a Agent<'a>,
    source: MessageSource,
    /// The reserved metadata keys, once a message needs them.
    reserved_keys: OnceCell<Vec<Id>>,
}

impl<'a> MessageParser<'a> {
    pub(super) fn of(agent: &'a Agent<'a>, source: MessageSource) -> Self {
        let source = if agent.caller.may_write_agent_messages() {
            source
        } else {
            MessageSource::Client
        };
        Self {
            agent,
            source,
            reserved_keys: OnceCell::new(),
        }
    }

    /// Parses a message and checks that the caller may write it.
    pub(super) fn parse(&self, message: &JsonObject) -> Result<NewMessage> {
        let mut message = parse_message(message, self.source, &|| self.load_reserved_keys())?;
        let caller = self.agent.caller;
        let is_users = message.action == Action::UserMessage;
        permit_role(caller, is_users, "message.role")?;
        message.note = Note::of_caller(&caller.authority());
        Ok(message)
    }

    fn load_reserved_keys(&self) -> Result<&[Id]> {
        if let Some(keys) = self.reserved_keys.get() {
            return Ok(keys);
        }
        let config = load_config(self.agent.db, &self.agent.deployed.memory.config)?;
        let keys = config.reserved_metadata_keys.0;
        Ok(self.reserved_keys.get_or_init(|| keys))
    }
}

/// Checks that the caller may write the stored message that is to be replaced.
fn permit_replacing(agent: &Agent<'_>, session_id: &Id, message: &NewMessage) -> Result<()> {
    if agent.caller.may_write_agent_messages() {
        return Ok(());
    }
    let Some(id) = &message.id else {
        return Ok(());
    };
    match find_action(agent.db, session_id, id)? {
        Some(action) => {
            let is_users = action == Action::UserMessage;
            permit_role(agent.caller, is_users, "message.id")
        }
        None => Ok(()),
    }
}

impl Operation for AppendMessage {
    const NAME: &'static str = "appendMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = AppendedMessage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AppendMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (position, message) = self.split(agent)?;
        append(agent, position, message)
    }
}

/// Appends a message, or replaces the message that has the same id.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct UpsertMessage(AppendMessage);

impl Operation for UpsertMessage {
    const NAME: &'static str = "upsertMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = AppendedMessage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.0.session_id)
    }
}

impl RunAtOnce for UpsertMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (position, message) = self.0.split(agent)?;
        permit_replacing(agent, &position.session_id, &message)?;
        if message.id.is_some()
            && let Some(updated) =
                update_message(agent.db, agent.host, &position.session_id, &message)?
        {
            let reply = appended_reply(false, &updated.message);
            return Ok(Reply {
                changed_message: message.id.filter(|_| updated.is_alone),
                ..reply
            });
        }
        append(agent, position, message)
    }
}

/// Replaces a message. The answer is `null` if no message has the id.
///
/// An unchanged message writes no row.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateMessage {
    session_id: Id,
    message: JsonObject,
    #[serde(default)]
    source: MessageSource,
}

impl Operation for UpdateMessage {
    const NAME: &'static str = "updateMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for UpdateMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let message = MessageParser::of(agent, self.source).parse(&self.message)?;
        drop(self.message);
        permit_replacing(agent, &self.session_id, &message)?;
        let updated = update_message(agent.db, agent.host, &self.session_id, &message)?;
        let is_alone = updated.as_ref().is_some_and(|updated| updated.is_alone);
        let reply = or_null(updated.map(|updated| updated.message));
        Ok(Reply {
            changed_message: message.id.filter(|_| is_alone),
            ..reply
        })
    }
}

/// Deletes messages. A message that followed a deleted one then follows the nearest
/// remaining message above it. Unknown ids are ignored.
///
/// With `purge`, their text is in no table after the call: summaries that covered the
/// messages are removed, and the answer is a receipt. Forks of the session keep their
/// copies.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteMessages {
    session_id: Id,
    #[serde(deserialize_with = "list::<_, _, 0, MAX_EVENTS>")]
    #[schemars(length(max = MAX_EVENTS))]
    message_ids: Vec<Id>,
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct DeletedMessages {
    deleted: i64,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl Operation for DeleteMessages {
    const NAME: &'static str = "deleteMessages";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = DeletedMessages;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for DeleteMessages {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (db, host, session_id) = (agent.db, agent.host, &self.session_id);
        let answer = |deleted: usize, receipt| {
            Reply::json(&DeletedMessages {
                deleted: deleted as i64,
                receipt,
            })
        };
        if self.purge {
            admit_purge(agent, Self::NAME)?;
            let (deleted, erasure) = purge_messages(db, host, session_id, &self.message_ids)?;
            let receipt = issue_of(agent, Self::NAME, &erasure, None)?;
            return Ok(answer(deleted, Some(receipt))?.purged(erasure.left));
        }
        answer(
            delete_messages(db, host, session_id, &self.message_ids)?,
            None,
        )
    }
}

/// Deletes all messages of a session and keeps the session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClearMessages {
    session_id: Id,
}

impl Operation for ClearMessages {
    const NAME: &'static str = "clearMessages";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = DeletedMessages;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for ClearMessages {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        // The running turn answers a message that is deleted now.
        agent.turns.cancel_with_waiting(&self.session_id);
        Reply::json(&DeletedMessages {
            deleted: clear_messages(agent.db, agent.host, &self.session_id)?,
            receipt: None,
        })
    }
}
