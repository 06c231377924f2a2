//! Operations on the entries of searchable blocks.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunWaiting};
use crate::operations::receipts::{DeletedItem, admit_purge};
use crate::operations::writers::{with_notifications_of, writer_of};
use crate::tracing::record_found;
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::filter::Filter;
use base::ids::Id;
use base::json::{Count, Limit, list, nullable, optional_list};
use base::tags::{Metadata, Tags};
use memory::BlockScope;
use memory::definitions::get_definition;
use memory::entries::EntryDetails;
use memory::entries::{self, delete, set};
use memory::entry::Entry;
use memory::entry_pages;
use memory::entry_pages::EntryPage;
use memory::entry_query::EntryQuery;
use memory::entry_text::{EntryText, MAX_SUPERSEDED};
use memory::found_entry::{FoundEntry, PastEntry};
use memory::label::Label;
use memory::origin::{MAX_SOURCE_EVENTS, MarksChange, Origin};
use memory::purge::purge_entry;
use memory::writer::StatedOrigin;
use recall::VectorReport;
use recall::entries::search;
use recall::questions::one_or_several;
use search::query::MAX_QUERIES;

/// Writes an entry of a searchable block. An entry with the same key is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetEntry {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
    /// One line, searched with the content.
    title: Option<String>,
    content: String,
    /// The time from which the fact is true. Default: the time of the write.
    valid_from: Option<Count>,
    /// The time until which the fact is true. Default: until another one replaces it.
    valid_until: Option<Count>,
    /// The keys of the entries that this one replaces. A search finds those only in the
    /// past.
    #[serde(default, deserialize_with = "list::<_, _, 0, MAX_SUPERSEDED>")]
    #[schemars(length(max = MAX_SUPERSEDED))]
    supersedes: Vec<String>,
    /// Custom data of the entry, for filtering: an object of at most 4 KiB. If omitted, it
    /// is unchanged; `null` removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Metadata>")]
    metadata: Option<Option<Metadata>>,
    /// At most 32 short lines. If omitted, they are unchanged; `[]` removes them.
    tags: Option<Tags>,
    /// The source of the text. Default: `operator`, or `user` with a minted token. A token
    /// can't set `operator`, and can set `agent` only with `allow.agentMessages`.
    source: Option<Origin>,
    /// The ids of the events that the text comes from.
    #[serde(default, deserialize_with = "list::<_, _, 0, MAX_SOURCE_EVENTS>")]
    #[schemars(length(max = MAX_SOURCE_EVENTS))]
    events: Vec<Id>,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

impl Operation for SetEntry {
    const NAME: &'static str = "setEntry";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Entry;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for SetEntry {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let text = EntryText {
            key: &self.key,
            title: self.title.as_deref(),
            content: &self.content,
            valid_from: self.valid_from.map(|time| time.0),
            valid_until: self.valid_until.map(|time| time.0),
            supersedes: Some(self.supersedes.as_slice()).filter(|keys| !keys.is_empty()),
            marks: MarksChange {
                metadata: self.metadata,
                tags: self.tags,
            },
        };
        let origin = StatedOrigin {
            source: self.source,
            events: &self.events,
        };
        let writer = origin.writer(agent.caller, self.session_id.as_ref())?;
        let writer = with_notifications_of(agent, writer, self.delivery_id.as_ref());
        Reply::json(&set(&memory, &block, &text, writer).await?)
    }
}

/// Deletes an entry of a searchable block. An entry that it replaced becomes valid again,
/// unless another entry also replaced it.
///
/// Its texts stay readable as earlier versions: `versionsKept` is their number, and
/// `versionsUntil` the time until which they stay. With `purge` they are erased, too, and
/// the answer is a receipt.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteEntry {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
    #[serde(default)]
    purge: bool,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

impl Operation for DeleteEntry {
    const NAME: &'static str = "deleteEntry";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = DeletedItem;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for DeleteEntry {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        if self.purge {
            admit_purge(agent, Self::NAME)?;
            let purged = purge_entry(&memory, &block, &self.key).await?;
            return DeletedItem::purged(agent, Self::NAME, purged);
        }
        let writer = writer_of(agent, self.session_id.as_ref(), self.delivery_id.as_ref());
        let until = DeletedItem::find_until(&memory, &block)?;
        let item = delete(&memory, &block, &self.key, writer).await?;
        DeletedItem::deleted(item, until)
    }
}

/// Lists the entries of a searchable block, in the order of their keys.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListEntries {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    limit: Limit<50, 200>,
    cursor: Option<String>,
    /// Only entries with this metadata and these tags. A request reads 1,000 entries: a
    /// page may have fewer than `limit`, or none, and still have a `cursor`.
    #[serde(rename = "where")]
    filter: Option<Filter>,
}

impl Operation for ListEntries {
    const NAME: &'static str = "listEntries";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = EntryPage;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for ListEntries {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let cursor = self.cursor.as_deref();
        let filter = self.filter.and_then(Filter::unless_empty);
        let page =
            entry_pages::list(&memory, &block, self.limit.0, cursor, filter.as_ref()).await?;
        Reply::json(&page)
    }
}

/// Shows an entry of a searchable block, or `null`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetEntry {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
}

impl Operation for GetEntry {
    const NAME: &'static str = "getEntry";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Option<EntryDetails>;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetEntry {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        Reply::json(&entries::get(&memory, &block, &self.key).await?)
    }
}

/// Searches the entries of searchable blocks, best first.
///
/// Words, their forms, "phrases" and prefixes* match as in `search`. With an
/// `EMBEDDING_MODEL`, entries of similar meaning are found, too. The results are what is
/// true now, or at the time `asOf`. With several `labels`, the results are merged into one
/// ranking, and each result has its block.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchContext {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    /// The block to search. Set this, `labels`, or both.
    label: Option<Label>,
    /// Several blocks.
    #[serde(
        default,
        deserialize_with = "optional_list::<_, _, 1, MAX_SEARCHED_BLOCKS>"
    )]
    #[schemars(length(min = 1, max = MAX_SEARCHED_BLOCKS))]
    labels: Option<Vec<Label>>,
    /// The words to search for. Set this or `queries`.
    query: Option<String>,
    /// Several queries: each is searched separately, and the results are merged into one
    /// ranking.
    #[serde(default, deserialize_with = "optional_list::<_, _, 1, MAX_QUERIES>")]
    #[schemars(length(min = 1, max = MAX_QUERIES))]
    queries: Option<Vec<String>>,
    #[serde(default)]
    limit: Limit<10, 100>,
    /// Searches what was true at this time. Default: now.
    as_of: Option<Count>,
    /// Only entries with this metadata and these tags, at the time that is searched.
    #[serde(rename = "where")]
    filter: Option<Filter>,
}

/// The most blocks of one search.
const MAX_SEARCHED_BLOCKS: usize = 8;

impl SearchContext {
    /// The blocks to search, without duplicates.
    fn labels(&self) -> Result<Vec<&Label>> {
        let mut labels: Vec<&Label> = Vec::new();
        for label in self.label.iter().chain(self.labels.iter().flatten()) {
            if !labels.iter().any(|known| known.key() == label.key()) {
                labels.push(label);
            }
        }
        match labels.len() {
            0 => Err(Error::invalid(
                "label",
                "`label` is missing: set `label` to a block, or `labels` to several.",
            )),
            1..=MAX_SEARCHED_BLOCKS => Ok(labels),
            _ => Err(Error::invalid(
                "labels",
                format!(
                    "`label` and `labels` together can have at most {MAX_SEARCHED_BLOCKS} blocks."
                ),
            )),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct FoundEntries {
    /// Best first.
    results: Vec<FoundEntry>,
    /// Matching facts that are no longer true: they have expired, or another entry replaced
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    past: Vec<PastEntry>,
    /// The search was cut short: it reached its limit before reading all matching entries.
    /// To find more, use rarer or fewer words.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// The contribution of vectors to the search, if there is an embedding model.
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<VectorReport>,
}

impl Operation for SearchContext {
    const NAME: &'static str = "searchContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = FoundEntries;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for SearchContext {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let blocks = self.labels()?.into_iter();
        let blocks = blocks.map(|label| get_definition(&memory, scope, label));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        let queries = one_or_several(self.query, self.queries)?;
        let filter = self.filter.and_then(Filter::unless_empty);
        let query = EntryQuery {
            queries: &queries,
            limit: self.limit.0,
            as_of: self.as_of.map(|time| time.0),
            filter: filter.as_ref(),
        };
        let found = search(&memory, &blocks, &query).await?;
        record_found(agent, found.results.len());
        Reply::json(&FoundEntries {
            results: found.results,
            past: found.past,
            truncated: found.is_cut,
            vectors: found.vectors,
        })
    }
}
