//! Changes of memory that a service is notified of (`onMemoryChange`). The callback is stored in
//! the change's own transaction; `chat/run/callbacks/` sends it. Without the setting there is no
//! row.
//!
//! Changes by the operator notify nobody: an import, a fork, retention, a purge. A purge and
//! retention also delete the pending callbacks about a deleted text, since they contain its key.

use serde::{Deserialize, Serialize};

use super::Memory;
use super::definition::Definition;
use super::kind::BlockKind;
use super::writer::MemoryWriter;
use base::database::Database;
use base::error::Result;
use base::json;
use store::callbacks::{NewCallback, ReportsOfBlock};
use store::config::{Config, load_config};
use store::consolidation::ask_when_idle;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// A readonly or writable block's text.
    #[default]
    Block,
    Entry,
    Document,
    /// A proposal was made, decided or withdrawn.
    Proposal,
}

/// A change, as its callback's row stores it. The text is read when the callback is sent, so that a
/// text that was erased in the meantime is sent to nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEvent {
    pub kind: ChangeKind,
    pub label: String,
    /// The key of the block that stores the content.
    block: String,
    /// The scope of the block: a session's id, or "" for the agent.
    #[serde(skip)]
    scope: String,
    /// Only for an entry or a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `None`: this agent stores no versions of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(default)]
    pub deleted: bool,
    /// Only for a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The state of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl ChangeEvent {
    /// A block's text was written.
    pub fn of_text(block: &Definition, version: i64) -> Self {
        Self {
            kind: ChangeKind::Block,
            label: block.label.as_str().to_owned(),
            block: block.content_key(),
            scope: block.scope.clone(),
            version: Some(version),
            ..Self::default()
        }
    }

    /// A proposal is new, or its state has changed.
    pub fn of_proposal(id: i64, label: &str, status: &str) -> Self {
        Self {
            kind: ChangeKind::Proposal,
            label: label.to_owned(),
            id: Some(id.to_string()),
            status: Some(status.to_owned()),
            ..Self::default()
        }
    }

    /// An entry or a document was written.
    pub fn of_item(block: &Definition, key: &str, version: Option<i64>) -> Self {
        Self {
            kind: match block.kind {
                BlockKind::Searchable => ChangeKind::Entry,
                BlockKind::Loadable => ChangeKind::Document,
                BlockKind::Readonly | BlockKind::Writable => ChangeKind::Block,
            },
            key: Some(key.to_owned()),
            version,
            ..Self::of_text(block, 0)
        }
    }

    /// An entry or a document was deleted.
    pub fn of_deletion(block: &Definition, key: &str, version: Option<i64>) -> Self {
        Self {
            deleted: true,
            ..Self::of_item(block, key, version)
        }
    }

    /// Stores the callback about the change, if the agent's configuration names a receiver. Part of
    /// the change's transaction. If an external backend stores the text, the callback is stored
    /// after that backend has accepted it.
    pub fn notify(&self, memory: &Memory<'_>, writer: MemoryWriter<'_>) -> Result<()> {
        if writer.is_silent {
            return Ok(());
        }
        let config = load_config(memory.db, &memory.deployed.config)?;
        self.schedule_consolidation(memory, &config, writer)?;
        if config.on_memory_change.is_none() {
            return Ok(());
        }
        let call = NewCallback {
            session_id: &self.scope,
            message_id: "",
            report: json::encode(self)?,
        };
        call.insert(memory.db, memory.host)?;
        memory.new_callbacks.mark();
        Ok(())
    }

    /// Schedules a consolidation if another writer changed an entry of the block that learning
    /// writes to. A proposal schedules it itself.
    fn schedule_consolidation(
        &self,
        memory: &Memory<'_>,
        config: &Config,
        writer: MemoryWriter<'_>,
    ) -> Result<()> {
        let is_entry = self.kind == ChangeKind::Entry && self.version.is_some() && !self.deleted;
        if !is_entry || writer.is_proposed || !self.scope.is_empty() {
            return Ok(());
        }
        let learn = config.learn.as_ref();
        if let Some(learn) = learn.filter(|learn| learn.is_into(&self.label))
            && ask_when_idle(memory.db, learn, memory.host.now_ms())?
        {
            memory.new_callbacks.mark();
        }
        Ok(())
    }
}

/// Selects callbacks about a text by its version.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    All,
    /// Those about these versions.
    Versions(&'a [i64]),
    /// Those about this version, or an earlier one.
    UpTo(i64),
}

/// Deletes the pending callbacks about a block, or one of its items, whose text was deleted. Part
/// of a transaction.
pub fn delete_callbacks(
    db: &dyn Database,
    scope: &str,
    block: &str,
    key: Option<&str>,
    selection: Selection<'_>,
) -> Result<()> {
    let (versions, up_to_version) = match selection {
        Selection::All => (None, None),
        Selection::Versions(versions) => (Some(versions), None),
        Selection::UpTo(version) => (None, Some(version)),
    };
    let reports = ReportsOfBlock {
        scope,
        block,
        key,
        versions,
        up_to_version,
    };
    reports.delete(db)
}
