//! Messages.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::UiMessage;
use super::shapes::{AppendedEvent, Erased, ErasedNames, HomeReceipt};
use crate::message::NewMessage;
use crate::operation::Operation;

/// Appends a message as one event, after the leaf or after `parentId`.
///
/// If the session already has the message's id, nothing is written.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendMessage {
    pub session_id: String,
    pub message: NewMessage,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_leaf_id: Option<Option<String>>,
    /// The event that the message follows. Default: the leaf. `null`: no event, so that
    /// the message is a root.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_id: Option<Option<String>>,
    /// With `client`, reserved metadata keys and provider metadata are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MessageSource>,
}

impl AppendMessage {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message: impl Into<NewMessage>) -> Self {
        Self {
            session_id: session_id.into(),
            message: message.into(),
            expected_leaf_id: None,
            parent_id: None,
            source: None,
        }
    }
}

setters! {
    AppendMessage:
    or null expected_leaf_id: impl Into<String>;
    or null parent_id: impl Into<String>;
    source: MessageSource;
}

impl Operation for AppendMessage {
    type Output = AppendedMessage;
    const NAME: &'static str = "appendMessage";
    const READS: bool = false;

    fn is_repeatable(&self) -> bool {
        self.message.id.is_some()
    }
}

/// Appends messages, all of them or none, each after the one before it.
///
/// A message whose id is already in the session is not written again, so a retry is safe.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendMessages {
    pub session_id: String,
    pub messages: Vec<NewMessage>,
    /// The leaf that the caller expects; at another leaf the call fails with `leaf_moved`.
    /// `null`: an empty session.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_leaf_id: Option<Option<String>>,
    /// The event that the first new message follows. Default: the leaf. `null`: no event, so
    /// that the message is a root.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_id: Option<Option<String>>,
    /// With `client`, reserved metadata keys and provider metadata are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MessageSource>,
}

impl AppendMessages {
    #[must_use]
    pub fn new(session_id: impl Into<String>, messages: Vec<NewMessage>) -> Self {
        Self {
            session_id: session_id.into(),
            messages,
            expected_leaf_id: None,
            parent_id: None,
            source: None,
        }
    }
}

setters! {
    AppendMessages:
    or null expected_leaf_id: impl Into<String>;
    or null parent_id: impl Into<String>;
    source: MessageSource;
}

impl Operation for AppendMessages {
    type Output = AppendedMessages;
    const NAME: &'static str = "appendMessages";
    const READS: bool = false;

    fn is_repeatable(&self) -> bool {
        self.messages.iter().all(|message| message.id.is_some())
    }
}

/// Replaces a message. The answer is `null` if no message has the id.
///
/// An unchanged message writes no row.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UpdateMessage {
    pub session_id: String,
    pub message: NewMessage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MessageSource>,
}

impl UpdateMessage {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message: impl Into<NewMessage>) -> Self {
        Self {
            session_id: session_id.into(),
            message: message.into(),
            source: None,
        }
    }
}

setters! {
    UpdateMessage:
    source: MessageSource;
}

impl Operation for UpdateMessage {
    type Output = Option<UiMessage>;
    const NAME: &'static str = "updateMessage";
    const READS: bool = false;
}

/// Appends a message, or replaces the message that has the same id.
///
/// A token for one session can run it on that session only. A minted token can only write user
/// messages, unless it allows `agentMessages`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UpsertMessage {
    pub session_id: String,
    pub message: NewMessage,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub expected_leaf_id: Option<Option<String>>,
    /// The event that the message follows. Default: the leaf. `null`: no event, so that
    /// the message is a root.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parent_id: Option<Option<String>>,
    /// With `client`, reserved metadata keys and provider metadata are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MessageSource>,
}

impl UpsertMessage {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message: impl Into<NewMessage>) -> Self {
        Self {
            session_id: session_id.into(),
            message: message.into(),
            expected_leaf_id: None,
            parent_id: None,
            source: None,
        }
    }
}

setters! {
    UpsertMessage:
    or null expected_leaf_id: impl Into<String>;
    or null parent_id: impl Into<String>;
    source: MessageSource;
}

impl Operation for UpsertMessage {
    type Output = AppendedMessage;
    const NAME: &'static str = "upsertMessage";
    const READS: bool = false;
}

/// Shows a message; `null` if no message has the id.
///
/// A message that is made from more than 4 MiB of events is refused. `loadEvents` reads such
/// events, and the error names the first and the last.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetMessage {
    pub session_id: String,
    pub message_id: String,
}

impl GetMessage {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            message_id: message_id.into(),
        }
    }
}

impl Operation for GetMessage {
    type Output = Option<UiMessage>;
    const NAME: &'static str = "getMessage";
    const READS: bool = true;
}

/// Reads the newest messages of a branch, in root→leaf order: as many as fit into `limit` and
/// `maxBytes`.
///
/// `before` takes the `cursor` of a page and reads the previous page. A page has at most 4 MiB, or
/// one message that is longer.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetHistory {
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Returns the messages as a model should receive them: older outputs and texts
    /// shortened, without unloaded documents, and with older files named instead of sent.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_model: Option<bool>,
    /// With `forModel`: the number of newest messages whose files are sent. If omitted: the
    /// agent's `keepMedia`.
    /// Default: `4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_media: Option<i64>,
    /// The end of the branch to read. Default: the session's leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Default: `4194304`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
}

impl GetHistory {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            before: None,
            for_model: None,
            keep_media: None,
            leaf_id: None,
            limit: None,
            max_bytes: None,
        }
    }
}

setters! {
    GetHistory:
    before: impl Into<String>;
    for_model: bool;
    keep_media: i64;
    leaf_id: impl Into<String>;
    limit: i64;
    max_bytes: i64;
}

impl Operation for GetHistory {
    type Output = HistoryPage;
    const NAME: &'static str = "getHistory";
    const READS: bool = true;
}

/// Deletes messages. A message that followed a deleted one then follows the nearest remaining
/// message above it. Unknown ids are ignored.
///
/// With `purge`, their text is in no table after the call: summaries that covered the messages are
/// removed, and the answer is a receipt. Forks of the session keep their copies.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteMessages {
    pub session_id: String,
    pub message_ids: Vec<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
}

impl DeleteMessages {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message_ids: Vec<String>) -> Self {
        Self {
            session_id: session_id.into(),
            message_ids,
            purge: None,
        }
    }
}

setters! {
    DeleteMessages:
    purge: bool;
}

impl Operation for DeleteMessages {
    type Output = DeletedMessages;
    const NAME: &'static str = "deleteMessages";
    const READS: bool = false;
}

/// Deletes all messages of a session and keeps the session.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ClearMessages {
    pub session_id: String,
}

impl ClearMessages {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}

impl Operation for ClearMessages {
    type Output = DeletedMessages;
    const NAME: &'static str = "clearMessages";
    const READS: bool = false;
}

/// What `appendMessage`, `upsertMessage` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendedMessage {
    /// `false`: the session already had a message with this id.
    pub inserted: bool,
    pub message: UiMessage,
}

/// What `appendMessages` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendedMessages {
    /// The outcome of each message, in the order of the request.
    pub messages: Vec<AppendedEvent>,
    pub leaf_id: Option<String>,
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeletedMessages {
    pub deleted: i64,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In a receipt for several agents: the name prefix of the destroyed agents, and their
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedNames>,
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// The answer of the block's external source. Absent: the text was stored only in this
    /// agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeReceipt>,
    /// The operation that erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// What `getHistory` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    pub messages: Vec<UiMessage>,
    /// Whether there are messages above these.
    pub truncated: bool,
    /// The `before` of the next request; `null` if no message is above these.
    pub cursor: Option<String>,
}

words! {
    /// The sender of a message. A `client` can't set the fields that only a server may set.
    pub enum MessageSource {
        Client = "client",
        Server = "server",
    }
}
