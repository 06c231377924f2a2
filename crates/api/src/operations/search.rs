//! The search operation.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunWaiting};
use crate::tracing::record_found;
use access::{Effect, Needs};
use base::action::Role;
use base::error::{Code, Error, Result};
use base::filter::Filter;
use base::ids::Id;
use base::json::{Count, Limit, MAX_NAMES, optional_list};
use conversation::index::build::{BuildScope, advance};
use conversation::index::find::SearchHit;
use conversation::index::request::SearchRequest as Wanted;
use conversation::log::sessions::session_exists;
use recall::VectorReport;
use recall::events::search;
use recall::questions::one_or_several;
use search::query::MAX_QUERIES;

/// Searches messages and the inputs and outputs of tools, best first.
///
/// Any of the words can match, in any of their forms. A "quoted phrase" must match, and a
/// trailing `*` makes a prefix. A query has at most 48 words, 8 prefixes of at least two
/// letters, and 8 phrases; further prefixes and phrases count as words. An agent's first
/// search starts to build its index, newest events first; until the index is complete,
/// answers have `pending`. With `configureAgent {vectors: true}` and an `EMBEDDING_MODEL`,
/// texts of similar meaning are found, too, except for phrases and prefixes.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Search {
    /// The words to search for. Set this or `queries`.
    query: Option<String>,
    /// Several queries: each is searched separately, and the results are merged into one
    /// ranking.
    #[serde(default, deserialize_with = "optional_list::<_, _, 1, MAX_QUERIES>")]
    #[schemars(length(min = 1, max = MAX_QUERIES))]
    queries: Option<Vec<String>>,
    /// Search only this session.
    session_id: Option<Id>,
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
    /// Only events of sessions with this metadata and these tags.
    #[serde(rename = "where")]
    filter: Option<Filter>,
}

#[derive(Serialize, JsonSchema)]
pub struct SearchResults {
    results: Vec<SearchHit>,
    /// The index is still being built, from the newest event backward, so older events
    /// can't be found yet. Building continues in the background; search again later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    /// The search was cut short: it reached its limit before reading all matching messages.
    /// To find more, use rarer or fewer words, or one session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The contribution of vectors to the search, if the agent has them switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<VectorReport>,
}

impl Operation for Search {
    const NAME: &'static str = "search";
    const NEEDS: Needs = Needs::Narrowed;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = SearchResults;
}

impl RunWaiting for Search {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let only = agent.caller.only_session();
        if only.is_some() && self.session_id.is_some() && self.session_id.as_ref() != only {
            return Err(Error::new(
                Code::Forbidden,
                "This token is for another session.",
            ));
        }
        let queries = one_or_several(self.query, self.queries)?;
        let session_id = self.session_id.as_ref().or(only);
        if let Some(id) = session_id
            && !session_exists(agent.db, id)?
        {
            return Err(Error::session_not_found(id.as_str()));
        }
        let roles: Option<Vec<&'static str>> = self
            .roles
            .filter(|roles| !roles.is_empty())
            .map(|roles| roles.into_iter().map(Role::name).collect());
        let scope = match only {
            Some(only) => BuildScope::Only(only.as_str()),
            None => BuildScope::Anyone(self.session_id.as_ref().map(Id::as_str)),
        };
        let progress = advance(agent.db, scope)?;
        let filter = self.filter.and_then(Filter::unless_empty);
        let wanted = Wanted {
            queries: &queries,
            session_id,
            limit: usize::try_from(self.limit.0).unwrap_or(0),
            roles: roles.as_deref(),
            since_ms: self.since.map(|since| since.0),
            until_ms: self.until.map(|until| until.0),
            filter: filter.as_ref(),
        };
        let found = search(&agent.memory(), &wanted).await?;
        record_found(agent, found.hits.len());
        let mut reply = Reply::json(&SearchResults {
            results: found.hits,
            pending: progress.is_pending,
            truncated: found.is_cut,
            vectors: found.vectors,
        })?;
        reply.indexing_continues = progress.continues;
        Ok(reply)
    }
}
