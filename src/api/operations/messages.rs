//! Operations on a session's messages.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs, permit, permit_voice};
use crate::api::limits::EVENTS_BODY_BYTES;
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::api::route::parse_session_id;
use crate::api::shown::load_shown;
use crate::base::action::Action;
use crate::base::budget::MAX_ANSWER_BYTES;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{JsonObject, Limit, list, nullable};
use crate::lifecycle::clear::clear_messages;
use crate::log::MAX_EVENTS;
use crate::log::append::Parent;
use crate::log::find::find_action;
use crate::log::sessions::session_exists;
use crate::messages::append::append_message;
use crate::messages::change::update_message;
use crate::messages::delete::delete_messages;
use crate::messages::history::{
    DEFAULT_MAX_BYTES, HistoryCursor, WalkStart, count_messages, load_page,
};
use crate::messages::parse::{MessageSource, NewMessage, parse_message};
use crate::messages::read::{find_message, load_branches, message_at_leaf};
use crate::messages::tree::leaf::resolve_leaf;
use crate::messages::tree::path::load_segments;
use crate::messages::view::Message;
use crate::store::config::load_config;

/// The longest page that a caller may ask for, in bytes.
const MAX_PAGE_BYTES: i64 = 32 << 20;

/// And the longest that there is: a page that is cut says so.
const MAX_HISTORY_BYTES: usize = MAX_ANSWER_BYTES + (3 << 20);

/// A message of the AI SDK, as it was appended, with `createdAt`. Fields of an
/// application's own are kept.
#[cfg(test)]
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = true))]
#[allow(dead_code)]
pub struct UiMessage {
    id: Id,
    #[schemars(extend("enum" = crate::base::action::Role::OF_MESSAGES.map(crate::base::action::Role::name)))]
    role: String,
    parts: Vec<JsonObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<serde_json::Value>,
    /// Milliseconds since the epoch. Where the message brought a `createdAt` of
    /// another form, such as a text, it stands here as it was appended.
    created_at: serde_json::Value,
}

#[cfg(test)]
#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
pub struct AppendedMessage {
    /// `false`: a message of this id was there already.
    inserted: bool,
    message: UiMessage,
}

#[cfg(test)]
#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
pub struct MessageList {
    messages: Vec<UiMessage>,
}

/// Appends a message: one event, after the leaf unless `parentId` says otherwise.
///
/// An id that is already in the session is not written again.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppendMessage {
    session_id: Id,
    message: JsonObject,
    /// The event that it follows. Left out: the leaf. `null`: none, it is a root.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    parent_id: Option<Option<Id>>,
    /// `client`: reserved metadata keys and provider metadata are taken out.
    #[serde(default)]
    source: MessageSource,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    expected_leaf_id: Option<Option<Id>>,
}

/// Where a message is to go.
struct MessagePlacement {
    session_id: Id,
    parent_id: Option<Option<Id>>,
    expected_leaf_id: Option<Option<Id>>,
}

impl AppendMessage {
    /// What is to be written, and where. As it was sent it is let go.
    fn split(self, agent: &Agent<'_>) -> Result<(MessagePlacement, NewMessage)> {
        let message = parse(agent, &self.message, self.source)?;
        let place = MessagePlacement {
            session_id: self.session_id,
            parent_id: self.parent_id,
            expected_leaf_id: self.expected_leaf_id,
        };
        Ok((place, message))
    }
}

fn append(agent: &Agent<'_>, place: MessagePlacement, message: NewMessage) -> Result<Reply> {
    let appended = append_message(
        agent.db,
        agent.host,
        &place.session_id,
        message,
        &Parent::from_field(place.parent_id),
        place.expected_leaf_id.as_ref(),
    )?;
    let reply = appended_reply(appended.inserted, &appended.message);
    Ok(if appended.inserted {
        reply.grown(&place.session_id)
    } else {
        reply
    })
}

fn appended_reply(inserted: bool, message: &Message) -> Reply {
    let head = match inserted {
        true => r#"{"inserted":true,"message":"#,
        false => r#"{"inserted":false,"message":"#,
    };
    Reply::text([head, &message.json, "}"].concat())
}

/// Reads a message that the caller may write. Who may not say what the agent said
/// may not say what only a server knows either.
fn parse(agent: &Agent<'_>, message: &JsonObject, source: MessageSource) -> Result<NewMessage> {
    let source = match agent.caller.may_write_agent_messages() {
        true => source,
        false => MessageSource::Client,
    };
    let reserved = match source {
        MessageSource::Client => load_config(agent.db)?.reserved_metadata_keys,
        MessageSource::Server => Vec::new(),
    };
    let message = parse_message(message, source, &reserved)?;
    let is_users = message.action == Action::UserMessage;
    permit_voice(agent.caller, is_users, "message.role")?;
    Ok(message)
}

/// Holds a message that is to be replaced against who may write what it is now.
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
            permit_voice(agent.caller, is_users, "message.id")
        }
        None => Ok(()),
    }
}

impl Operation for AppendMessage {
    const NAME: &'static str = "appendMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    #[cfg(test)]
    type Output = AppendedMessage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AppendMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (place, message) = self.split(agent)?;
        append(agent, place, message)
    }
}

/// Appends a message, or updates the one that has its id.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct UpsertMessage(AppendMessage);

impl Operation for UpsertMessage {
    const NAME: &'static str = "upsertMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    #[cfg(test)]
    type Output = AppendedMessage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.0.session_id)
    }
}

impl RunAtOnce for UpsertMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (place, message) = self.0.split(agent)?;
        permit_replacing(agent, &place.session_id, &message)?;
        if message.id.is_some()
            && let Some(updated) =
                update_message(agent.db, agent.host, &place.session_id, &message)?
        {
            return Ok(appended_reply(false, &updated));
        }
        append(agent, place, message)
    }
}

/// Replaces a message; `null` if there is none of its id. One that is unchanged
/// writes no row.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    #[cfg(test)]
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for UpdateMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let message = parse(agent, &self.message, self.source)?;
        drop(self.message);
        permit_replacing(agent, &self.session_id, &message)?;
        let updated = update_message(agent.db, agent.host, &self.session_id, &message)?;
        Ok(or_null(updated))
    }
}

fn or_null(message: Option<Message>) -> Reply {
    Reply::text(message.map_or_else(|| "null".to_owned(), |message| message.json))
}

/// Shows a message, or `null`.
///
/// One that is made from events of more than 4 MiB is refused: `loadEvents` reads
/// those, and the error says from where to where.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetMessage {
    session_id: Id,
    message_id: Id,
}

impl Operation for GetMessage {
    const NAME: &'static str = "getMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        require_session(agent, &self.session_id)?;
        Ok(or_null(find_message(
            agent.db,
            &self.session_id,
            &self.message_id,
        )?))
    }
}

fn require_session(agent: &Agent<'_>, session_id: &Id) -> Result<()> {
    if session_exists(agent.db, session_id)? {
        return Ok(());
    }
    Err(Error::session_not_found(session_id.as_str()))
}

/// Reads a branch as messages in root→leaf order: the newest that fit into
/// `limit` and `maxBytes`.
///
/// `before`, the `cursor` of a page, reads the page above it. A page has at most
/// 4 MiB, or one message that is longer.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetHistory {
    session_id: Id,
    /// The end of the branch to read. Left out: the session's leaf.
    leaf_id: Option<Id>,
    #[serde(default)]
    limit: Limit<100, 1000>,
    #[serde(default)]
    max_bytes: Limit<DEFAULT_MAX_BYTES, MAX_PAGE_BYTES>,
    before: Option<String>,
}

#[cfg(test)]
#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code)]
pub struct HistoryPage {
    messages: Vec<UiMessage>,
    /// Whether there are messages above these.
    truncated: bool,
    /// For `before`; `null` where nothing is above.
    cursor: Option<String>,
}

impl Operation for GetHistory {
    const NAME: &'static str = "getHistory";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = HistoryPage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetHistory {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf = resolve_leaf(agent.db, &self.session_id, "leafId", self.leaf_id.as_ref())?;
        let start = match &self.before {
            None => WalkStart::At(leaf.unwrap_or(0)),
            Some(before) => {
                let from_seq = HistoryCursor::parse(before)
                    .ok_or_else(|| {
                        Error::invalid(
                            "before",
                            "`before` must be the `cursor` of an earlier page, as it was.",
                        )
                    })?
                    .resolve(agent.db, &self.session_id)?;
                WalkStart::within(agent.db, &self.session_id, from_seq, leaf)?
            }
        };
        if matches!(start, WalkStart::At(0)) {
            return Ok(Reply::text(
                r#"{"messages":[],"truncated":false,"cursor":null}"#.to_owned(),
            ));
        }
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let max_bytes = usize::try_from(self.max_bytes.0).unwrap_or(0);
        let max_bytes = max_bytes.min(MAX_HISTORY_BYTES);
        let page = load_page(agent.db, &self.session_id, start, limit, max_bytes)?;
        Ok(Reply::text(page.json()))
    }
}

/// A token that may read the history may read it in this way too.
pub fn get_messages(agent: &Agent<'_>, session_id: String) -> Result<Reply> {
    let answer = permit_and_show(agent, &session_id);
    #[cfg(test)]
    crate::api::answers::hold_refusal("getMessages", &answer);
    answer
}

fn permit_and_show(agent: &Agent<'_>, session_id: &str) -> Result<Reply> {
    let session_id = parse_session_id(session_id)?;
    permit(agent.caller, GetHistory::RULE, Some(&session_id))?;
    load_shown(agent.db, &session_id).map(Reply::text)
}

/// Reads the messages that directly follow one: its branches.
///
/// More than 4 MiB of them are refused: `getMessage` reads each by itself.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBranches {
    session_id: Id,
    message_id: Id,
}

impl Operation for GetBranches {
    const NAME: &'static str = "getBranches";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = MessageList;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetBranches {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        require_session(agent, &self.session_id)?;
        let messages = load_branches(agent.db, &self.session_id, &self.message_id)?;
        let messages: Vec<String> = messages.into_iter().map(|message| message.json).collect();
        Ok(Reply::text(format!(
            r#"{{"messages":[{}]}}"#,
            messages.join(",")
        )))
    }
}

/// Shows the message that the session's default branch ends with, or `null`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetLatestLeaf {
    session_id: Id,
}

impl Operation for GetLatestLeaf {
    const NAME: &'static str = "getLatestLeaf";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetLatestLeaf {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        match resolve_leaf(agent.db, &self.session_id, "leafId", None)? {
            Some(seq) => Ok(or_null(message_at_leaf(agent.db, &self.session_id, seq)?)),
            None => Ok(or_null(None)),
        }
    }
}

/// Counts the messages of a branch.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetPathLength {
    session_id: Id,
    leaf_id: Option<Id>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathLength {
    length: i64,
}

impl Operation for GetPathLength {
    const NAME: &'static str = "getPathLength";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
    type Output = PathLength;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetPathLength {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf = resolve_leaf(agent.db, &self.session_id, "leafId", self.leaf_id.as_ref())?;
        let segments = load_segments(agent.db, &self.session_id, leaf.unwrap_or(0))?;
        Reply::json(&PathLength {
            length: count_messages(agent.db, &self.session_id, &segments)?,
        })
    }
}

/// Deletes messages. What followed them joins the nearest message that is left;
/// ids that are not there are passed over.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteMessages {
    session_id: Id,
    #[serde(deserialize_with = "list::<_, _, 0, MAX_EVENTS>")]
    #[cfg_attr(test, schemars(length(max = MAX_EVENTS)))]
    message_ids: Vec<Id>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeletedMessages {
    deleted: i64,
}

impl Operation for DeleteMessages {
    const NAME: &'static str = "deleteMessages";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    #[cfg(test)]
    type Output = DeletedMessages;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for DeleteMessages {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let deleted = delete_messages(agent.db, agent.host, &self.session_id, &self.message_ids)?;
        Reply::json(&DeletedMessages {
            deleted: deleted as i64,
        })
    }
}

/// Deletes all messages of a session and keeps the session.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClearMessages {
    session_id: Id,
}

impl Operation for ClearMessages {
    const NAME: &'static str = "clearMessages";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    #[cfg(test)]
    type Output = DeletedMessages;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for ClearMessages {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        // What it is answering goes.
        agent.turns.cancel(&self.session_id);
        Reply::json(&DeletedMessages {
            deleted: clear_messages(agent.db, agent.host, &self.session_id)?,
        })
    }
}
