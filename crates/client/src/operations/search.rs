//! Finding what was said.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::{Role, VectorReport};
use super::shapes::Filter;
use crate::operation::Operation;

/// Searches messages and the inputs and outputs of tools, best first.
///
/// Any of the words can match, in any of their forms. A "quoted phrase" must match, and a trailing
/// `*` makes a prefix. A query has at most 48 words, 8 prefixes of at least two letters, and 8
/// phrases; further prefixes and phrases count as words. An agent's first search starts to build
/// its index, newest events first; until the index is complete, answers have `pending`. With
/// `configureAgent {vectors: true}` and an `EMBEDDING_MODEL`, texts of similar meaning are found,
/// too, except for phrases and prefixes.
///
/// A token for one session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Search {
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
    /// Search only this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only events created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Only events created at this time or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Only events of sessions with this metadata and these tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Filter>,
}

impl Search {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    Search:
    limit: i64;
    queries: Vec<String>;
    query: impl Into<String>;
    roles: Vec<Role>;
    session_id: impl Into<String>;
    since: i64;
    until: i64;
    r#where: Filter;
}

impl Operation for Search {
    type Output = Results;
    const NAME: &'static str = "search";
    const READS: bool = true;
}

/// A part of `Results`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    pub session_id: String,
    pub session_name: Option<String>,
    pub id: String,
    pub role: HitRole,
    pub action: HitAction,
    pub seq: i64,
    pub created_at: i64,
    /// About 240 characters of the event's text, unchanged except for `…` at a cut.
    pub snippet: String,
    /// The positions of the matching words in the snippet: the start and end of each word,
    /// in UTF-16 units.
    pub highlights: Vec<[i64; 2]>,
    /// Can be used to compare the results of one search. Scores of different searches can't be
    /// compared.
    pub score: f64,
}

words! {
    /// The words of this field.
    pub enum HitRole {
        User = "user",
        Assistant = "assistant",
        Tool = "tool",
        System = "system",
    }
}

words! {
    /// The words of this field.
    pub enum HitAction {
        UserMessage = "user_message",
        AgentMessage = "agent_message",
        ToolCallRequest = "tool_call_request",
        ToolResult = "tool_result",
        SystemInstruction = "system_instruction",
        Compaction = "compaction",
    }
}

/// What `search` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Results {
    pub results: Vec<Hit>,
    /// The index is still being built, from the newest event backward, so older events
    /// can't be found yet. Building continues in the background; search again later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<bool>,
    /// The search was cut short: it reached its limit before reading all matching messages.
    /// To find more, use rarer or fewer words, or one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The contribution of vectors to the search, if the agent has them switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorReport>,
}
