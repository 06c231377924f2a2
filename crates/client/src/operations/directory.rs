//! Agents of a directory.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::later_shapes::{Receipt, Role};
use crate::operation::Operation;

/// Lists the agents whose names begin so, in the order of their names' bytes. The Worker needs the
/// binding `DIRECTORY`. `GET /agents/session-agent?prefix=` gives the same.
///
/// Needs the secret.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListAgents {
    /// Of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The beginning of the names, for instance `user:42:`. Left out: all agents.
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

/// Searches in the agents whose names begin so, at most 32 of them: each agent searches by itself,
/// as `search` does.
///
/// The scores of two agents can't be compared. So the best results of all agents come first, then
/// the second ones of all, and so on; among these, those that show more of the words.
///
/// Needs the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SearchAgents {
    /// The beginning of the agents' names, for instance `user:42:`.
    pub prefix: String,
    /// Default: `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Several questions: each is looked for by itself, and the results make one ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<String>>,
    /// The words to look for. Give this or `queries`.
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

/// Destroys the agents whose names begin so, with all that they keep, at most 32 in one request. If
/// the prefix ends with a colon, the agent of the name before the colon goes, too, after the last
/// of them: it is the home of the texts that these agents share. `homes` names others.
///
/// Each agent is destroyed by itself. If some of them fail, or if more are left, ask again with the
/// answer's `receipt`: the next receipt counts what this one counts. Texts in a bucket or behind a
/// service stay there.
///
/// Needs the secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EraseAgents {
    /// The beginning of the agents' names, for instance `user:42:`.
    pub prefix: String,
    /// The prefix once more, which guards against mistakes.
    pub confirm: String,
    /// Further agents to destroy at the end, which keep what these share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homes: Option<Vec<String>>,
    /// The receipt of the request before, if this one goes on.
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
    /// In the order of their names' bytes.
    pub agents: Vec<ListedAgent>,
    /// For the next page; `null` at the end.
    pub cursor: Option<String>,
}

/// The result of `eraseAgents`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ErasedAgents {
    /// The agents that are gone, each with its receipt.
    pub agents: Vec<Value>,
    /// The agents that are still there, since they gave no answer. Ask again.
    pub failed: Vec<String>,
    /// More agents are left. Ask again.
    pub more: bool,
    /// Other agents that kept blocks of the destroyed ones, and that are still there. Name
    /// those in `homes` that are to go, too.
    pub homes_left: Vec<String>,
    /// One receipt for all of them, and for those of the requests before.
    pub receipt: Receipt,
}

/// The results of several agents.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FoundInAgents {
    /// As `search` gives them, each with the name of its `agent`.
    pub results: Vec<Value>,
    /// The agents that were asked.
    pub agents: Vec<String>,
    /// The agents that gave no answer. Ask again.
    pub failed: Vec<String>,
    /// More agents have names that begin so: a longer prefix finds them.
    pub more: bool,
    /// An agent still builds its index; search again later.
    pub pending: bool,
    /// The search of an agent was cut short, as `search` says it.
    pub truncated: bool,
}

/// An agent of the list.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListedAgent {
    pub name: String,
    /// The time when the directory first heard of the agent.
    pub created_at: i64,
}
