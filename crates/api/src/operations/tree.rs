//! Operations on a session's tree and on the feed of its changes.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sessions::check_name;
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::Result;
use base::ids::Id;
use base::json::{Count, JsonObject, Limit};
use base::tags::Tags;
use conversation::log::sessions::Session;
use conversation::messages::feed::load_page;
use conversation::messages::tree::leaf::set_leaf;
use lifecycle::fork::{Fork, fork_session};

/// Forks a session: the new session has a copy of the path up to `atId`, with the same ids
/// and times.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkSession {
    session_id: Id,
    /// The last event to copy. Default: the leaf.
    at_id: Option<Id>,
    name: Option<String>,
    metadata: Option<JsonObject>,
    #[serde(default)]
    tags: Tags,
}

impl Operation for ForkSession {
    const NAME: &'static str = "forkSession";
    // A token for this session could not see the new session.
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Session;
    type Output = Session;
}

impl RunAtOnce for ForkSession {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_name(self.name.as_deref())?;
        let fork = Fork {
            session_id: &self.session_id,
            at_id: self.at_id.as_ref(),
            name: self.name,
            metadata: self.metadata,
            tags: self.tags,
        };
        fork_session(agent.db, agent.host, agent.name, fork).map(Reply::text)
    }
}

/// Chooses the branch that reads and appends follow by default.
///
/// An append to another branch makes that branch the default.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetLeaf {
    session_id: Id,
    id: Id,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChosenLeaf {
    leaf_id: Id,
}

impl Operation for SetLeaf {
    const NAME: &'static str = "setLeaf";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Session;
    type Output = ChosenLeaf;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for SetLeaf {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        set_leaf(agent.db, agent.host, &self.session_id, &self.id)?;
        Reply::json(&ChosenLeaf { leaf_id: self.id })
    }
}

/// Reads a session's changes, in order.
///
/// A client that stores the last `cursor` and continues from there sees every change once.
/// A client that starts late reaches the same state. An `append` or an `update` identifies
/// a message that has changed: read the message by its id, and drop it if the answer is
/// `null`. At a `clear`, drop your copy. If `since` is from before the session was deleted
/// and created again, the answer starts with a `clear`, followed by every change from the
/// beginning.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetChanges {
    session_id: Id,
    /// The `cursor` of an earlier page. Default: 0, the beginning.
    since: Option<Count>,
    #[serde(default)]
    limit: Limit<100, 1000>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Changes {
    pub changes: Vec<Change>,
    /// The next call's `since`.
    pub cursor: i64,
}

#[derive(Deserialize, JsonSchema)]
pub struct Change {
    pub cursor: i64,
    #[schemars(extend("enum" = ["append", "update", "delete", "clear", "compaction"]))]
    pub r#type: String,
    pub id: Option<Id>,
}

impl Operation for GetChanges {
    const NAME: &'static str = "getChanges";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Changes;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetChanges {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let since = self.since.map_or(0, |since| since.0);
        load_page(agent.db, &self.session_id, since, self.limit.0).map(Reply::text)
    }
}
