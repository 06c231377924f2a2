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
/// A token that is narrowed to a session runs it on that session.
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
    /// The rules for how long the session's texts are kept. A field that is left out is as the
    /// agent's configuration says; `null` in a field lifts the agent's rule here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// At most 32 short lines, by which `listSessions` and `search` find the session.
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
/// A token that is narrowed to a session runs it on that session.
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
/// A token that is narrowed to a session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListSessions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Only sessions with this metadata and these tags. A request looks at 500 sessions: a
    /// page may show fewer than `limit`, or none, and have a `cursor`.
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
/// A field that is left out stays; `null` clears a field. Metadata, tags and retention are replaced
/// as a whole. `retention` and `pinned` need the secret.
///
/// A token that is narrowed to a session runs it on that session.
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
    /// The rules for how long the session's texts are kept. A field that is left out is as the
    /// agent's configuration says; `null` in a field lifts the agent's rule here.
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
/// A token that is narrowed to a session runs it on that session.
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

/// Forks a session: the new session holds a copy of the path up to `atId`, with the same ids and
/// times.
///
/// Not for a token that is narrowed to a session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ForkSession {
    pub session_id: String,
    /// The last event to copy. Left out: the leaf.
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
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AddUsage {
    pub session_id: String,
    /// The input tokens that the provider read from its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<i64>,
    /// The estimate of `inputTokens`: the `tokensEstimate` of the context that was sent, or the sum
    /// of those that were sent. The session's later estimates come closer to what the provider
    /// counts. Left out: nothing is learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<i64>,
    /// The cost, in a currency of the caller's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Names this usage, so that a retry counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<i64>,
    /// The model that was asked, for `getUsage`.
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

/// Shows what was spent: by turn, by day or by model; of a session, or of the whole agent.
///
/// Summaries and reported usage count in days and models. Turns without a session in the request
/// come session by session. A page looks at 1,000 events at most, so it may be empty and still have
/// a `cursor`.
///
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetUsage {
    pub by: UsageGrouping,
    /// The `cursor` of the page before. Models have one page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only what was spent at this time or later. Of days, the whole day counts.
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

/// Lists turns that are over, newest first: of a session, or of the whole agent.
///
/// A turn tells when it ran, who asked, each request to a model and each tool's call with its
/// times, the parts of the context, what was spent, and why it failed. No word of a message, an
/// argument or an output is in it. A running turn is not listed.  A page looks at 1,000 events at
/// most, so it may be short, or empty, and still have a `cursor`. A session keeps the records of
/// its 16 newest failed turns, also where nothing was said, and of the 16 newest others that ended
/// without a word. If an agent keeps more than 16,384 such records, its list takes 1,024 sessions
/// at a time, those that began last first.
///
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetTurns {
    /// The `cursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Failed turns alone.
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

/// Shows one turn that is over. `null`: there is no such turn, or its record went with its
/// messages.
///
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetTurn {
    /// A turn's `turnId`, from `getTurns`.
    pub turn_id: String,
    /// The turn's session. A token of one session whose id has 168 characters or more needs
    /// it.
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
