//! Operations on a session's event log.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::EVENTS_BODY_BYTES;
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::operations::compaction::Growth;
use crate::operations::receipts::{admit_purge, issue_of};
use access::{Effect, Needs, permit_role};
use base::action::Action;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{Count, Limit, MAX_NAMES, list, nullable, optional_list};
use conversation::log::MAX_EVENTS;
use conversation::log::append::AppendOutcome;
use conversation::log::append::{Parent, append_and_schedule_learning};
use conversation::log::event::Event;
use conversation::log::event::NewEvent;
use conversation::log::load::{EventQuery, load_events};
use conversation::log::note::Note;
use conversation::log::sessions::session_exists;
use conversation::messages::delete::delete_events;
use conversation::messages::parse::without_reserved;
use lifecycle::purge::purge_events;
use lifecycle::receipt::Receipt;
use store::config::load_config;

/// Appends events to a session's log, all of them or none, in the order given.
///
/// An event whose id is already in the session is not written again. The answer contains
/// the stored event with `inserted: false`, so a retry is safe.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppendEvents {
    session_id: Id,
    #[serde(deserialize_with = "list::<_, _, 1, MAX_EVENTS>")]
    #[schemars(length(min = 1, max = MAX_EVENTS))]
    events: Vec<NewEvent>,
    /// The event that the first new event follows. Default: the leaf. `null`: the first new
    /// event is a root.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    parent_id: Option<Option<Id>>,
    /// The leaf that the caller expects; at another leaf the call fails with `leaf_moved`.
    /// `null`: an empty session.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    expected_leaf_id: Option<Option<Id>>,
}

impl AppendEvents {
    /// Removes reserved metadata keys, which only a server may set.
    fn drop_reserved(&mut self, keys: &[Id]) {
        for event in &mut self.events {
            event.metadata = event
                .metadata
                .take()
                .and_then(|metadata| without_reserved(&metadata, keys));
        }
    }
}

impl Operation for AppendEvents {
    const NAME: &'static str = "appendEvents";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = AppendOutcome;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AppendEvents {
    fn run(mut self, agent: &Agent<'_>) -> Result<Reply> {
        for (index, event) in self.events.iter().enumerate() {
            event.check(&format!("events[{index}]"))?;
            let is_users = event.action == Action::UserMessage;
            permit_role(agent.caller, is_users, &format!("events[{index}].action"))?;
        }
        // The append itself reads the settings, so they are read here only if they matter.
        let has_metadata = self.events.iter().any(|event| event.metadata.is_some());
        if has_metadata && !agent.caller.may_write_agent_messages() {
            let config = load_config(agent.db, &agent.deployed.memory.config)?;
            self.drop_reserved(&config.reserved_metadata_keys.0);
        }
        let authority = agent.caller.authority();
        for event in &mut self.events {
            event.note = Note::of_caller(&authority);
        }
        let growth = Growth::of(agent);
        let outcome = append_and_schedule_learning(
            agent.db,
            agent.host,
            &self.session_id,
            &self.events,
            (
                &Parent::from_field(self.parent_id),
                self.expected_leaf_id.as_ref(),
            ),
            &|stored| growth.find_due(stored),
        )?;
        let reply = Reply::json(&outcome)?;
        Ok(growth.mark(reply, &self.session_id, &outcome.follow_up))
    }
}

/// Reads a session's events in the order in which they were written.
///
/// Without filters: the oldest `limit`; with `tail`, the newest. Use `afterSeq` and
/// `beforeSeq` to page through the rest. A page of more than 4 MiB is refused, and the
/// error contains a `limit` that fits.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadEvents {
    session_id: Id,
    #[serde(default)]
    limit: Limit<50, 1000>,
    /// Only events created at this time or later.
    since: Option<Count>,
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_NAMES>")]
    #[schemars(length(max = MAX_NAMES))]
    actions: Option<Vec<Action>>,
    #[serde(default)]
    tail: bool,
    after_seq: Option<Count>,
    before_seq: Option<Count>,
}

impl Operation for LoadEvents {
    const NAME: &'static str = "loadEvents";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Vec<Event>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for LoadEvents {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if !session_exists(agent.db, &self.session_id)? {
            return Err(Error::session_not_found(self.session_id.as_str()));
        }
        let query = EventQuery {
            session_id: &self.session_id,
            limit: self.limit.0,
            since_ms: self.since.map(|since| since.0),
            // An empty list does not filter.
            actions: self
                .actions
                .as_deref()
                .filter(|actions| !actions.is_empty()),
            after_seq: self.after_seq.map(|seq| seq.0),
            before_seq: self.before_seq.map(|seq| seq.0),
            newest: self.tail,
        };
        load_events(agent.db, &query).map(Reply::text)
    }
}

/// Deletes events. Their children are attached to the nearest remaining ancestor. Unknown
/// ids are ignored.
///
/// With `purge`, their text is in no table after the call: summaries that covered the
/// events are removed, and the answer is a receipt. Forks of the session keep their copies.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteEvents {
    session_id: Id,
    #[serde(deserialize_with = "list::<_, _, 0, MAX_EVENTS>")]
    #[schemars(length(max = MAX_EVENTS))]
    event_ids: Vec<Id>,
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DeletedEvents {
    deleted: usize,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl Operation for DeleteEvents {
    const NAME: &'static str = "deleteEvents";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = DeletedEvents;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for DeleteEvents {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (db, host, session_id) = (agent.db, agent.host, &self.session_id);
        if self.purge {
            admit_purge(agent, Self::NAME)?;
            let (deleted, erasure) = purge_events(db, host, session_id, &self.event_ids)?;
            let receipt = Some(issue_of(agent, Self::NAME, &erasure, None)?);
            return Ok(Reply::json(&DeletedEvents { deleted, receipt })?.purged(erasure.left));
        }
        let deleted = delete_events(db, host, session_id, &self.event_ids)?;
        Reply::json(&DeletedEvents {
            deleted,
            receipt: None,
        })
    }
}
