//! Changes of memory that a service is told of (`onMemoryChange`). The call is written in the
//! change's own transaction; `chat/run/callbacks/` makes it. Without the setting there is no
//! row.
//!
//! Changes by the operator are told to nobody: an import, a fork, retention, a purge. A purge and
//! retention also take back the calls that wait for a text which is gone, since they name its key.

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
    /// A proposal was made, decided or taken back.
    Proposal,
}

/// A change, as its call's row keeps it. The text is read when the call is made, so that a
/// text which was erased meanwhile is told to nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToldChange {
    pub kind: ChangeKind,
    pub label: String,
    /// The key of the block that holds the content.
    block: String,
    /// The scope of the block: a session's id, or "" for the agent.
    #[serde(skip)]
    scope: String,
    /// Of an entry or a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `None`: this agent keeps no versions of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(default)]
    pub deleted: bool,
    /// Of a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The state of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl ToldChange {
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

    /// A proposal is in another state, or new.
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

    /// Writes the call that tells of the change, if the agent's configuration names somebody. Part
    /// of the change's transaction. If a home elsewhere keeps the text, the call is written after
    /// that home has taken it.
    pub fn tell(&self, memory: &Memory<'_>, writer: MemoryWriter<'_>) -> Result<()> {
        if writer.tells_nobody {
            return Ok(());
        }
        let config = load_config(memory.db, &memory.deployed.config)?;
        self.ask_for_order(memory, &config, writer)?;
        if config.on_memory_change.is_none() {
            return Ok(());
        }
        let call = NewCallback {
            session_id: &self.scope,
            message_id: "",
            report: json::encode(self)?,
        };
        call.insert(memory.db, memory.host)?;
        memory.new_callbacks.note();
        Ok(())
    }

    /// In the block that is learnt into, other writers' texts are put in order like learnt ones. A
    /// proposal says so itself.
    fn ask_for_order(
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
            memory.new_callbacks.note();
        }
        Ok(())
    }
}

/// Which calls that name a text are meant.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    All,
    /// Those that tell of these versions.
    Versions(&'a [i64]),
    /// Those that tell of this version, or of one before.
    UpTo(i64),
}

/// Takes back the calls that name a block, or one of its items, whose text is gone. Part of a
/// transaction.
pub fn forget_calls(
    db: &dyn Database,
    scope: &str,
    block: &str,
    key: Option<&str>,
    told: Told<'_>,
) -> Result<()> {
    let (versions, up_to_version) = match told {
        Told::All => (None, None),
        Told::Versions(versions) => (Some(versions), None),
        Told::UpTo(version) => (None, Some(version)),
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
