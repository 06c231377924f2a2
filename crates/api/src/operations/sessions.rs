//! Operations on sessions.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::operations::receipts::{admit_purge, issue_of};
use access::{Caller, Effect, Needs, needs_secret};
use base::error::{Code, Error, Result};
use base::filter::Filter;
use base::ids::Id;
use base::json::{Count, JsonObject, Limit, nullable};
use base::tags::Tags;
use conversation::log::session_pages::{SessionCursor, WantedSessions, list_sessions};
use conversation::log::sessions::Session;
use conversation::log::sessions::{
    MAX_NAME_CHARS, NewSession, SessionChange, add_usage, create_session, find_session,
    update_session,
};
use conversation::session::retention::SessionRetentionChange;
use conversation::session::usage::UsageIncrease;
use lifecycle::delete::delete_session;
use lifecycle::pending_import;
use lifecycle::purge::purge_session;
use lifecycle::receipt::Receipt;
use memory::definitions::has_own_rules;
use store::retention::Retention;

/// Starts a session.
///
/// With an `id` that exists it fails with `already_exists`. `parentSessionId`
/// must name a session of this agent. `retention` and `pinned` need the secret.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateSession {
    id: Option<Id>,
    name: Option<String>,
    metadata: Option<JsonObject>,
    /// At most 32 short lines, by which `listSessions` and `search` can filter.
    #[serde(default)]
    tags: Tags,
    parent_session_id: Option<Id>,
    /// The session's retention rules. Omitted fields use the agent's rules; `null` in a
    /// field turns off the agent's rule here.
    retention: Option<Retention>,
    /// Whether retention deletes nothing of this session.
    pinned: Option<bool>,
}

impl Operation for CreateSession {
    const NAME: &'static str = "createSession";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = Session;

    fn session_id(&self) -> Option<&Id> {
        self.id.as_ref()
    }
}

impl RunAtOnce for CreateSession {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_name(self.name.as_deref())?;
        if agent.caller.only_session().is_some() && self.parent_session_id.is_some() {
            return Err(Error::new(
                Code::Forbidden,
                "This token is for one session and can't name another as its parent.",
            ));
        }
        let new = NewSession {
            id: self.id,
            name: self.name,
            metadata: self.metadata,
            tags: self.tags,
            parent_session_id: self.parent_session_id,
            retention: SessionRetentionChange {
                retention: self.retention.map(Some),
                pinned: self.pinned,
            },
        };
        check_retention(agent.caller, &new.retention)?;
        let asks = new.retention.asks();
        let session = create_session(
            agent.db,
            agent.host,
            agent.name,
            &new,
            pending_import::forget,
        )?;
        agent.schedule_retention(asks);
        Ok(Reply::text(session))
    }
}

/// Shows a session, or `null`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetSession {
    session_id: Id,
}

impl Operation for GetSession {
    const NAME: &'static str = "getSession";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Option<Session>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetSession {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let session = find_session(agent.db, &self.session_id)?;
        Ok(session.map_or_else(|| Reply::text("null".to_owned()), Reply::text))
    }
}

/// Lists sessions, newest activity first.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListSessions {
    #[serde(default)]
    limit: Limit<50, 500>,
    cursor: Option<String>,
    /// Only sessions with this metadata and these tags. A request reads 500 sessions: a
    /// page may have fewer than `limit`, or none, and still have a `cursor`.
    #[serde(rename = "where")]
    filter: Option<Filter>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionPage {
    pub sessions: Vec<Session>,
    pub cursor: Option<String>,
}

impl Operation for ListSessions {
    const NAME: &'static str = "listSessions";
    const NEEDS: Needs = Needs::Narrowed;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = SessionPage;
}

impl RunAtOnce for ListSessions {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let before = match &self.cursor {
            None => None,
            Some(text) => Some(SessionCursor::parse(text).ok_or_else(|| {
                Error::invalid(
                    "cursor",
                    "`cursor` must be the unchanged `cursor` of an earlier page.",
                )
            })?),
        };
        let filter = self.filter.and_then(Filter::unless_empty);
        let wanted = WantedSessions {
            limit: self.limit.0,
            before: before.as_ref(),
            only: agent.caller.only_session(),
            filter: filter.as_ref(),
        };
        list_sessions(agent.db, &wanted).map(Reply::text)
    }
}

/// Changes a session's name, metadata or tags.
///
/// Omitted fields are unchanged; `null` clears a field. Metadata, tags and retention are
/// replaced as a whole. `retention` and `pinned` require the secret.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateSession {
    session_id: Id,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<String>")]
    name: Option<Option<String>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<JsonObject>")]
    metadata: Option<Option<JsonObject>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Tags>")]
    tags: Option<Option<Tags>>,
    /// The session's retention rules. Omitted fields use the agent's rules; `null` in a
    /// field turns off the agent's rule here.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Retention>")]
    retention: Option<Option<Retention>>,
    /// Whether retention deletes nothing of this session.
    pinned: Option<bool>,
}

impl Operation for UpdateSession {
    const NAME: &'static str = "updateSession";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = Session;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for UpdateSession {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_name(self.name.as_ref().and_then(Option::as_deref))?;
        let change = SessionChange {
            name: self.name,
            metadata: self.metadata,
            tags: self.tags.map(Option::unwrap_or_default),
            retention: SessionRetentionChange {
                retention: self.retention,
                pinned: self.pinned,
            },
        };
        check_retention(agent.caller, &change.retention)?;
        let asks = change.retention.asks();
        let session = update_session(
            agent.db,
            agent.host,
            &self.session_id,
            &change,
            has_own_rules,
        )?;
        agent.schedule_retention(asks);
        Ok(Reply::text(session))
    }
}

/// Deletes a session and everything in it, in one transaction.
///
/// With `purge`, its text is overwritten as well, and the answer is a receipt. Forks of
/// the session keep their copies.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteSession {
    session_id: Id,
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeletedSession {
    /// `false`: the session did not exist.
    deleted: bool,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl Operation for DeleteSession {
    const NAME: &'static str = "deleteSession";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = DeletedSession;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for DeleteSession {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.purge {
            admit_purge(agent, Self::NAME)?;
        }
        agent.turns.cancel_with_waiting(&self.session_id);
        if self.purge {
            let (deleted, erasure) = purge_session(agent.db, &self.session_id)?;
            let receipt = Some(issue_of(agent, Self::NAME, &erasure, None)?);
            return Ok(Reply::json(&DeletedSession { deleted, receipt })?.purged(erasure.left));
        }
        let deleted = delete_session(agent.db, &self.session_id)?;
        Reply::json(&DeletedSession {
            deleted,
            receipt: None,
        })
    }
}

/// Adds to a session's model usage.
///
/// Calls with the same `id` count once. A session remembers at least its newest
/// 1,000 ids.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddUsage {
    session_id: Id,
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    /// The input tokens that the provider read from its cache.
    cached_input_tokens: Option<Count>,
    /// The estimate of `inputTokens`: the `tokensEstimate` of the context that was sent, or
    /// the sum of several. It calibrates the session's later estimates to the provider's
    /// count. If omitted, they are not calibrated.
    context_tokens: Option<Count>,
    /// The model that was called, for `getUsage`.
    model: Option<Id>,
    /// Identifies this usage, so that a retry counts once.
    id: Option<Id>,
    /// The cost, in the caller's currency.
    cost: Option<f64>,
}

impl Operation for AddUsage {
    const NAME: &'static str = "addUsage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = Session;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AddUsage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let cost = self.cost.unwrap_or(0.0);
        if !(0.0..=1e15).contains(&cost) {
            return Err(Error::invalid(
                "cost",
                "`cost` must be a number from 0 to 10^15.",
            ));
        }
        let more = UsageIncrease {
            input_tokens: self.input_tokens.map_or(0, |count| count.0),
            output_tokens: self.output_tokens.map_or(0, |count| count.0),
            cached_input_tokens: self.cached_input_tokens.map_or(0, |count| count.0),
            cost,
            context_tokens: self.context_tokens.map_or(0, |count| count.0),
            model: self.model.map(|model| model.as_str().to_owned()),
        };
        let call_id = self.id.as_ref();
        add_usage(agent.db, agent.host, &self.session_id, &more, call_id).map(Reply::text)
    }
}

/// The operator decides how long texts are stored.
fn check_retention(caller: &Caller, change: &SessionRetentionChange) -> Result<()> {
    let field = match (&change.retention, change.pinned) {
        (Some(_), _) => "retention",
        (None, Some(_)) => "pinned",
        (None, None) => return Ok(()),
    };
    match caller {
        Caller::Owner => Ok(()),
        Caller::Scoped(_) => Err(needs_secret(field)),
    }
}

pub fn check_name(name: Option<&str>) -> Result<()> {
    match name {
        Some(name) if name.chars().count() > MAX_NAME_CHARS => Err(Error::invalid(
            "name",
            format!("`name` must have at most {MAX_NAME_CHARS} characters."),
        )),
        _ => Ok(()),
    }
}
