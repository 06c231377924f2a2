//! Agents of a directory.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::later_shapes::{Receipt, Role};
use crate::operation::Operation;

/// Lists the agents whose names start with the prefix, in the order of their names' bytes. The
/// Worker needs the binding `DIRECTORY`. `GET /agents/session-agent?prefix=` returns the same.
///
/// Requires the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListAgents {
    /// From the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The prefix of the names, for example `user:42:`. If omitted: all agents.
    /// Default: `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl ListAgents {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ListAgents:
    cursor: impl Into<String>;
    limit: i64;
    prefix: impl Into<String>;
}

impl Operation for ListAgents {
    type Output = AgentPage;
    const NAME: &'static str = "listAgents";
    const READS: bool = false;
}

/// Searches up to 32 agents whose names start with the prefix: each agent searches separately, as
/// `search` does.
///
/// The scores of two agents can't be compared. So the best result of every agent comes first, then
/// every second-best result, and so on. At the same rank, results that contain more of the words
/// come first.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SearchAgents {
    /// The prefix of the agents' names, for example `user:42:`.
    pub prefix: String,
    /// Default: `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Several queries: each is searched separately, and the results are merged into one
    /// ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<String>>,
    /// The words to search for. Set this or `queries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only messages of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Role>>,
    /// Only events created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Only events created at this time or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl SearchAgents {
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            limit: None,
            queries: None,
            query: None,
            roles: None,
            since: None,
            until: None,
        }
    }
}

setters! {
    SearchAgents:
    limit: i64;
    queries: Vec<String>;
    query: impl Into<String>;
    roles: Vec<Role>;
    since: i64;
    until: i64;
}

impl Operation for SearchAgents {
    type Output = FoundInAgents;
    const NAME: &'static str = "searchAgents";
    const READS: bool = false;
}

/// Destroys the agents whose names start with the prefix, with all their data, at most 32 in one
/// request. If the prefix ends with a colon, the agent of the name before the colon is destroyed
/// last: it stores what these agents share. `homes` lists others.
///
/// Each agent is destroyed separately. If some of them fail, or if more are left, repeat the
/// request with the answer's `receipt`: the next receipt includes its counts. Texts in a bucket or
/// behind a service are not deleted.
///
/// Requires the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EraseAgents {
    /// The prefix of the agents' names, for example `user:42:`.
    pub prefix: String,
    /// The prefix again, as a confirmation.
    pub confirm: String,
    /// Further agents to destroy last, which store shared memory of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homes: Option<Vec<String>>,
    /// The receipt of the previous request, if this one continues it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

impl EraseAgents {
    #[must_use]
    pub fn new(prefix: impl Into<String>, confirm: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            confirm: confirm.into(),
            homes: None,
            receipt: None,
        }
    }
}

setters! {
    EraseAgents:
    homes: Vec<String>;
    receipt: Receipt;
}

impl Operation for EraseAgents {
    type Output = ErasedAgents;
    const NAME: &'static str = "eraseAgents";
    const READS: bool = false;
}

/// A page of the list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AgentPage {
    /// Sorted by name, byte by byte.
    pub agents: Vec<ListedAgent>,
    /// For the next page; `null` at the end.
    pub cursor: Option<String>,
}

/// The result of `eraseAgents`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ErasedAgents {
    /// The destroyed agents, each with its receipt.
    pub agents: Vec<Value>,
    /// The agents that still exist because they didn't respond. Repeat the request.
    pub failed: Vec<String>,
    /// More agents are left. Repeat the request.
    pub more: bool,
    /// Other agents that stored blocks of the destroyed ones, and that still exist. To
    /// destroy them, too, list them in `homes`.
    pub homes_left: Vec<String>,
    /// One receipt for all of them, and for those of the requests before.
    pub receipt: Receipt,
}

/// The results of several agents.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FoundInAgents {
    /// Results as in `search`, each with the name of its `agent`.
    pub results: Vec<Value>,
    /// The agents that were searched.
    pub agents: Vec<String>,
    /// The agents that didn't respond. Repeat the request.
    pub failed: Vec<String>,
    /// More agents match the prefix. To search them, use a longer one.
    pub more: bool,
    /// An agent is still building its index; search again later.
    pub pending: bool,
    /// The search of an agent was cut short, as in `search`.
    pub truncated: bool,
}

/// An agent of the list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListedAgent {
    pub name: String,
    /// The time when the agent first registered in the directory.
    pub created_at: i64,
}
