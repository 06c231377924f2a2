//! Finds all mentions of a subject, and erases them.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::receipts::{admit_purge, issue_of};
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{Limit, MAX_NAMES, list, optional_list};
use lifecycle::erase::{MAX_MENTIONS, erase_mentions};
use lifecycle::mentions::Mentions;
use lifecycle::mentions::{MAX_QUERY_CHARS, Mention, Wanted, find_mentions};
use lifecycle::receipt::Receipt;

/// Finds all mentions of a text, or everything that comes from events: events, summaries,
/// blocks, entries, documents, their versions, copies and frozen prompts.
///
/// Each request searches a limited part of the agent. Repeat it with the answer's `cursor`
/// until that is `null`; a page may be empty. Texts stored outside this agent, and texts
/// that a running turn has not written yet, are not searched.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FindMentions {
    /// The exact text, ignoring case. 3 to 200 characters. Set this or `ids`.
    query: Option<String>,
    /// The ids of events. Finds these events in all sessions, the summaries that cover them, and
    /// the memory that models wrote in them.
    #[serde(default, deserialize_with = "optional_list::<_, _, 1, MAX_NAMES>")]
    #[schemars(length(min = 1, max = MAX_NAMES))]
    ids: Option<Vec<Id>>,
    #[serde(default)]
    limit: Limit<50, MAX_FOUND>,
    cursor: Option<String>,
}

/// The most mentions of one page: as many as `erase` accepts.
const MAX_FOUND: i64 = MAX_MENTIONS as i64;

/// A shorter text occurs nearly everywhere.
const MIN_QUERY_CHARS: usize = 3;

impl Operation for FindMentions {
    const NAME: &'static str = "findMentions";
    const NEEDS: Needs = Needs::Narrowed;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Mentions;
}

impl RunAtOnce for FindMentions {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let wanted = match (&self.query, &self.ids) {
            (Some(query), None) => Wanted::Text(check_query(query)?),
            (None, Some(ids)) => Wanted::Events(ids),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::invalid(
                    "query",
                    "Set either `query` or `ids`, not both.",
                ));
            }
        };
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let only = agent.caller.only_session();
        let cursor = self.cursor.as_deref();
        Reply::json(&find_mentions(agent.db, &wanted, only, limit, cursor)?)
    }
}

fn check_query(query: &str) -> Result<&str> {
    let query = query.trim();
    let chars = query.chars().count();
    if !(MIN_QUERY_CHARS..=MAX_QUERY_CHARS).contains(&chars) {
        return Err(Error::invalid(
            "query",
            format!("`query` must have {MIN_QUERY_CHARS} to {MAX_QUERY_CHARS} characters."),
        ));
    }
    Ok(query)
}

/// Erases places that `findMentions` found, all in one transaction, with one receipt.
///
/// After this, their text is in no table. An event is erased with the summaries that cover
/// it; an entry and a document with their earlier versions. The newest text of a block, a
/// session's name and metadata, and a block's description are emptied but not removed.
/// Frozen prompts that may show the text are rendered again at their next use.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Erase {
    /// The places, as returned by `findMentions`.
    #[serde(deserialize_with = "list::<_, _, 1, MAX_MENTIONS>")]
    #[schemars(length(min = 1, max = MAX_MENTIONS))]
    places: Vec<Mention>,
}

#[derive(Serialize, JsonSchema)]
pub struct EraseResult {
    /// The number of places that existed. An event with several places counts once.
    found: usize,
    #[serde(flatten)]
    receipt: Receipt,
}

impl Operation for Erase {
    const NAME: &'static str = "erase";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = EraseResult;

    /// The session that contains all mentions. A mention that belongs to the agent is in none.
    fn session_id(&self) -> Option<&Id> {
        let session = self.places.first()?.session_id.as_ref()?;
        let is_in_session = |mention: &Mention| {
            mention.session_id.as_ref() == Some(session) && !mention.kind.is_agents()
        };
        self.places.iter().all(is_in_session).then_some(session)
    }
}

impl RunAtOnce for Erase {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        admit_purge(agent, Self::NAME)?;
        let erased = erase_mentions(agent.db, agent.host, &self.places)?;
        let receipt = issue_of(agent, Self::NAME, &erased.erasure, None)?;
        let reply = Reply::json(&EraseResult {
            found: erased.found,
            receipt,
        })?;
        Ok(reply.purged(erased.erasure.left))
    }
}
