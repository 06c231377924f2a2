//! Operations on the entries of searchable blocks.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs};
use crate::api::operation::{Agent, Operation, Reply, RunWaiting};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::base::json::Limit;
use crate::memory::BlockScope;
use crate::memory::definitions::get_definition;
#[cfg(test)]
use crate::memory::entries::EntryPage;
use crate::memory::entries::{delete, list};
#[cfg(test)]
use crate::memory::entry::Entry;
use crate::memory::entry_search::FoundEntry;
use crate::memory::label::Label;
use crate::vectors::VectorReport;
use crate::vectors::entries::{search, set};

/// Writes an entry of a searchable block. An entry with the same key is replaced.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetEntry {
    /// The session that the block belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
    /// One line, searched with the content.
    title: Option<String>,
    content: String,
}

impl Operation for SetEntry {
    const NAME: &'static str = "setEntry";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    #[cfg(test)]
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
        let title = self.title.as_deref();
        Reply::json(&set(&memory, &block, &self.key, title, &self.content).await?)
    }
}

/// Deletes an entry of a searchable block.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteEntry {
    /// The session that the block belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryDeleted {
    /// `false`: there was no such entry.
    deleted: bool,
}

impl Operation for DeleteEntry {
    const NAME: &'static str = "deleteEntry";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    #[cfg(test)]
    type Output = EntryDeleted;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for DeleteEntry {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let deleted = delete(&memory, &block, &self.key).await?;
        Reply::json(&EntryDeleted { deleted })
    }
}

/// Lists the entries of a searchable block, in the order of their keys.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListEntries {
    /// The session that the block belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    limit: Limit<50, 200>,
    cursor: Option<String>,
}

impl Operation for ListEntries {
    const NAME: &'static str = "listEntries";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
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
        Reply::json(&list(&memory, &block, self.limit.0, cursor).await?)
    }
}

/// Searches the entries of a searchable block, best first.
///
/// Words, their forms, "phrases" and beginnings* match as they do in `search`.
/// With an `EMBEDDING_MODEL`, entries of similar meaning are found, too.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchContext {
    /// The session that the block belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    query: String,
    #[serde(default)]
    limit: Limit<10, 100>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundEntries {
    /// Best first.
    results: Vec<FoundEntry>,
    /// How vector search contributed, where there is an embedding model.
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<VectorReport>,
}

impl Operation for SearchContext {
    const NAME: &'static str = "searchContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = FoundEntries;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for SearchContext {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let found = search(&memory, &block, &self.query, self.limit.0).await?;
        Reply::json(&FoundEntries {
            results: found.results,
            vectors: found.vectors,
        })
    }
}
