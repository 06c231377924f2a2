//! Operations over the agents of a directory: listing them, and searching in them.
//!
//! All need the secret, because they reach beyond the agent that receives the request. Any
//! agent may receive it, and an unused one stays unused.

use crate::json_schema::JsonSchema;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::search::Search;
use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Effect, Needs};
use base::action::Role;
use base::error::{Error, Result};
use base::json::{self, Count, Limit, MAX_NAMES, json, optional_list};
use base::outbound::{CallLimits, CallPurpose, Endpoint, OutboundRequest, send_and_read};
use directory::list::AgentPage;
use directory::list::list_agents;
use memory::backends::agent::secret_header;
use recall::questions::one_or_several;
use search::query::MAX_QUERIES;

/// The most agents that one search queries, and that one request destroys.
pub const MAX_AGENTS: usize = 32;

/// The most agents that are queried concurrently.
const AT_ONCE: usize = 6;

/// The timeout for an agent's answer, and its most bytes.
const ANSWER: CallLimits = CallLimits {
    wait_ms: 10_000,
    silence_ms: 20_000,
    no_content_ms: None,
    total_ms: 20_000,
    max_bytes: 1 << 20,
};

/// Lists the agents whose names start with the prefix, in the order of their names' bytes.
/// The Worker needs the binding `DIRECTORY`. `GET /agents/session-agent?prefix=` returns
/// the same.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListAgents {
    /// The prefix of the names, for example `user:42:`. If omitted: all agents.
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    limit: Limit<100, 1000>,
    /// From the previous page.
    cursor: Option<String>,
}

impl Operation for ListAgents {
    const NAME: &'static str = "listAgents";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Nothing;
    type Output = AgentPage;
}

impl RunWaiting for ListAgents {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let after = self.cursor.as_deref().unwrap_or_default();
        let limit = usize::try_from(self.limit.0).unwrap_or(1);
        Reply::json(&list_agents(agent.outbound, &self.prefix, after, limit).await?)
    }
}

/// Searches up to 32 agents whose names start with the prefix: each agent searches
/// separately, as `search` does.
///
/// The scores of two agents can't be compared. So the best result of every agent comes first, then
/// every second-best result, and so on. At the same rank, results that contain more of the words
/// come first.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchAgents {
    /// The prefix of the agents' names, for example `user:42:`.
    prefix: String,
    /// The words to search for. Set this or `queries`.
    query: Option<String>,
    /// Several queries: each is searched separately, and the results are merged into one
    /// ranking.
    #[serde(default, deserialize_with = "optional_list::<_, _, 1, MAX_QUERIES>")]
    #[schemars(length(min = 1, max = MAX_QUERIES))]
    queries: Option<Vec<String>>,
    #[serde(default)]
    limit: Limit<20, 100>,
    /// Only messages of these roles.
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_NAMES>")]
    #[schemars(length(max = MAX_NAMES))]
    roles: Option<Vec<Role>>,
    /// Only events created at this time or later.
    since: Option<Count>,
    /// Only events created at this time or earlier.
    until: Option<Count>,
}

/// The results of several agents.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSearchResults {
    /// Results as in `search`, each with the name of its `agent`.
    results: Vec<Value>,
    /// The agents that were searched.
    agents: Vec<String>,
    /// The agents that didn't respond. Repeat the request.
    failed: Vec<String>,
    /// More agents match the prefix. To search them, use a longer one.
    more: bool,
    /// An agent is still building its index; search again later.
    pending: bool,
    /// The search of an agent was cut short, as in `search`.
    truncated: bool,
}

impl Operation for SearchAgents {
    const NAME: &'static str = "searchAgents";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = AgentSearchResults;
}

impl RunWaiting for SearchAgents {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_prefix(&self.prefix)?;
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let queries = one_or_several(self.query, self.queries)?;
        let roles = self.roles.unwrap_or_default();
        let roles: Vec<&str> = roles.into_iter().map(Role::name).collect();
        let mut wanted = json!({"queries": queries, "limit": self.limit.0, "roles": roles});
        for (name, at) in [("since", self.since), ("until", self.until)] {
            if let (Some(at), Some(fields)) = (at, wanted.as_object_mut()) {
                fields.insert(name.to_owned(), at.0.into());
            }
        }
        let body = json::text(&wanted);
        let page = list_agents(agent.outbound, &self.prefix, "", MAX_AGENTS).await?;
        let searches = page.agents.into_iter().map(|listed| {
            let body = body.clone();
            async move {
                let answer = ask(agent, &listed.name, Search::NAME, body).await;
                (listed.name, answer)
            }
        });
        let answers: Vec<_> = stream::iter(searches).buffered(AT_ONCE).collect().await;
        let mut found = AgentSearchResults {
            results: Vec::new(),
            agents: Vec::new(),
            failed: Vec::new(),
            more: page.cursor.is_some(),
            pending: false,
            truncated: false,
        };
        let mut ranked = Vec::new();
        for (name, answer) in answers {
            match answer {
                Ok(mut answer) => {
                    let is_set = |field: &str| answer.get(field) == Some(&Value::Bool(true));
                    found.pending |= is_set("pending");
                    found.truncated |= is_set("truncated");
                    let results = answer.get_mut("results").map(Value::take);
                    let results = results.and_then(|results| results.as_array().cloned());
                    for (rank, mut hit) in results.unwrap_or_default().into_iter().enumerate() {
                        if let Some(fields) = hit.as_object_mut() {
                            fields.insert("agent".to_owned(), name.as_str().into());
                        }
                        ranked.push((rank, shown_words(&hit), hit));
                    }
                }
                Err(_) => found.failed.push(name.clone()),
            }
            found.agents.push(name);
        }
        ranked.sort_by_key(|(rank, words, _)| (*rank, std::cmp::Reverse(*words)));
        found.results = ranked.into_iter().map(|(_, _, hit)| hit).collect();
        found.results.truncate(limit);
        Reply::json(&found)
    }
}

/// How many different words of the query a result contains.
fn shown_words(hit: &Value) -> usize {
    let text: Vec<u16> = hit
        .get("snippet")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .encode_utf16()
        .collect();
    let spans = hit.get("highlights").and_then(Value::as_array);
    let words = spans.into_iter().flatten().filter_map(|span| {
        let at = |end: usize| usize::try_from(span.get(end)?.as_u64()?).ok();
        let word = text.get(at(0)?..at(1)?)?;
        Some(String::from_utf16_lossy(word).to_lowercase())
    });
    words.collect::<std::collections::BTreeSet<_>>().len()
}

pub fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        Err(Error::invalid(
            "prefix",
            "`prefix` must not be empty: it selects the agents, for example `user:42:`.",
        ))
    } else {
        Ok(())
    }
}

/// Calls an operation of another agent. An agent that answers with an error, or not at all,
/// counts as failed.
pub async fn ask(agent: &Agent<'_>, name: &str, operation: &str, body: String) -> Result<Value> {
    let silent = || Error::storage("an agent didn't respond");
    let call = OutboundRequest {
        purpose: CallPurpose::Memory,
        endpoint: Endpoint::Agent {
            name: name.to_owned(),
            operation: operation.to_owned(),
        },
        headers: secret_header(agent.outbound).into_iter().collect(),
        body,
        limits: ANSWER,
    };
    match send_and_read(agent.outbound, call).await {
        Ok(answer) if answer.status == 200 => {
            json::decode_tree(&String::from_utf8_lossy(&answer.body)).map_err(|_| silent())
        }
        _ => Err(silent()),
    }
}
