//! Sessions.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Retention;
use super::sessions_shapes::{
    Session, SessionPage, ShownTurn, TurnList, UsageGrouping, UsagePage, WasDeleted,
};
use super::shapes::Filter;
use crate::Object;
use crate::operation::Operation;

/// Starts a session.
///
/// With an `id` that exists it fails with `already_exists`. `parentSessionId` must name a session
/// of this agent. `retention` and `pinned` need the secret.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// Whether retention deletes nothing of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The session's retention rules. Omitted fields use the agent's rules; `null` in a
    /// field turns off the agent's rule here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// At most 32 short lines, by which `listSessions` and `search` can filter.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl CreateSession {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    CreateSession:
    id: impl Into<String>;
    metadata: Object;
    name: impl Into<String>;
    parent_session_id: impl Into<String>;
    pinned: bool;
    retention: Retention;
    tags: Vec<String>;
}

impl Operation for CreateSession {
    type Output = Session;
    const NAME: &'static str = "createSession";
    const READS: bool = false;
}

/// Shows a session, or `null`.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetSession {
    pub session_id: String,
}

impl GetSession {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}

impl Operation for GetSession {
    type Output = Option<Session>;
    const NAME: &'static str = "getSession";
    const READS: bool = true;
}

/// Lists sessions, newest activity first.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
///
/// A token for one session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListSessions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only sessions with this metadata and these tags. A request reads 500 sessions: a
    /// page may have fewer than `limit`, or none, and still have a `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Filter>,
}

impl ListSessions {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ListSessions:
    cursor: impl Into<String>;
    limit: i64;
    r#where: Filter;
}

impl Operation for ListSessions {
    type Output = SessionPage;
    const NAME: &'static str = "listSessions";
    const READS: bool = true;
}

/// Changes a session's name, metadata or tags.
///
/// Omitted fields are unchanged; `null` clears a field. Metadata, tags and retention are replaced
/// as a whole. `retention` and `pinned` require the secret.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UpdateSession {
    pub session_id: String,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<Option<Object>>,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<Option<String>>,
    /// Whether retention deletes nothing of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// The session's retention rules. Omitted fields use the agent's rules; `null` in a
    /// field turns off the agent's rule here.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub retention: Option<Option<Retention>>,
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub tags: Option<Option<Vec<String>>>,
}

impl UpdateSession {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            metadata: None,
            name: None,
            pinned: None,
            retention: None,
            tags: None,
        }
    }
}

setters! {
    UpdateSession:
    or null metadata: Object;
    or null name: impl Into<String>;
    pinned: bool;
    or null retention: Retention;
    or null tags: Vec<String>;
}

impl Operation for UpdateSession {
    type Output = Session;
    const NAME: &'static str = "updateSession";
    const READS: bool = false;
}

/// Deletes a session and everything in it, in one transaction.
///
/// With `purge`, its text is overwritten as well, and the answer is a receipt. Forks of the session
/// keep their copies.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteSession {
    pub session_id: String,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
}

impl DeleteSession {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            purge: None,
        }
    }
}

setters! {
    DeleteSession:
    purge: bool;
}

impl Operation for DeleteSession {
    type Output = WasDeleted;
    const NAME: &'static str = "deleteSession";
    const READS: bool = false;
}

/// Forks a session: the new session has a copy of the path up to `atId`, with the same ids and
/// times.
///
/// Not available to a token for one session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ForkSession {
    pub session_id: String,
    /// The last event to copy. Default: the leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl ForkSession {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            at_id: None,
            metadata: None,
            name: None,
            tags: None,
        }
    }
}

setters! {
    ForkSession:
    at_id: impl Into<String>;
    metadata: Object;
    name: impl Into<String>;
    tags: Vec<String>;
}

impl Operation for ForkSession {
    type Output = Session;
    const NAME: &'static str = "forkSession";
    const READS: bool = false;
}

/// Adds to a session's model usage.
///
/// Calls with the same `id` count once. A session remembers at least its newest 1,000 ids.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AddUsage {
    pub session_id: String,
    /// The input tokens that the provider read from its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<i64>,
    /// The estimate of `inputTokens`: the `tokensEstimate` of the context that was sent, or
    /// the sum of several. It calibrates the session's later estimates to the provider's
    /// count. If omitted, they are not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<i64>,
    /// The cost, in the caller's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Identifies this usage, so that a retry counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<i64>,
    /// The model that was called, for `getUsage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<i64>,
}

impl AddUsage {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            cached_input_tokens: None,
            context_tokens: None,
            cost: None,
            id: None,
            input_tokens: None,
            model: None,
            output_tokens: None,
        }
    }
}

setters! {
    AddUsage:
    cached_input_tokens: i64;
    context_tokens: i64;
    cost: f64;
    id: impl Into<String>;
    input_tokens: i64;
    model: impl Into<String>;
    output_tokens: i64;
}

impl Operation for AddUsage {
    type Output = Session;
    const NAME: &'static str = "addUsage";
    const READS: bool = false;

    fn is_repeatable(&self) -> bool {
        self.id.is_some()
    }
}

/// Shows usage by turn, by day or by model; of a session, or of the whole agent.
///
/// The usage of summaries and reported usage are included by day and by model, but not by turn. If
/// the request has no session, turns are listed session by session. A page reads at most 1,000
/// events, so it may be empty and still have a `cursor`.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetUsage {
    pub by: UsageGrouping,
    /// The `cursor` of the previous page. Models have one page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only usage at this time or later. A day is included as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

impl GetUsage {
    #[must_use]
    pub fn new(by: UsageGrouping) -> Self {
        Self {
            by,
            cursor: None,
            limit: None,
            session_id: None,
            since: None,
        }
    }
}

setters! {
    GetUsage:
    cursor: impl Into<String>;
    limit: i64;
    session_id: impl Into<String>;
    since: i64;
}

impl Operation for GetUsage {
    type Output = UsagePage;
    const NAME: &'static str = "getUsage";
    const READS: bool = true;
}

/// Lists completed turns, newest first: of a session, or of the whole agent.
///
/// A turn contains when it ran, who started it, each model request and tool call with its times,
/// the parts of the context, the usage, and the reason for a failure. It never contains the text of
/// a message, an argument or an output. Running turns are not listed.  A page reads at most 1,000
/// events, so it may be short, or empty, and still have a `cursor`. A session stores the records of
/// its 16 newest failed turns, even without output, and of the 16 newest others that ended without
/// output. If an agent has more than 16,384 such records, the list covers 1,024 sessions at a time,
/// most recently created first.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetTurns {
    /// The `cursor` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only failed turns.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
    /// Default: `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetTurns {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetTurns:
    cursor: impl Into<String>;
    failed: bool;
    limit: i64;
    session_id: impl Into<String>;
}

impl Operation for GetTurns {
    type Output = TurnList;
    const NAME: &'static str = "getTurns";
    const READS: bool = true;
}

/// Shows one completed turn. `null`: there is no such turn, or its record was deleted with its
/// messages.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetTurn {
    /// A turn's `turnId`, from `getTurns`.
    pub turn_id: String,
    /// The turn's session. Required for a token for one session whose id has 168 characters
    /// or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetTurn {
    #[must_use]
    pub fn new(turn_id: impl Into<String>) -> Self {
        Self {
            turn_id: turn_id.into(),
            session_id: None,
        }
    }
}

setters! {
    GetTurn:
    session_id: impl Into<String>;
}

impl Operation for GetTurn {
    type Output = Option<ShownTurn>;
    const NAME: &'static str = "getTurn";
    const READS: bool = true;
}
