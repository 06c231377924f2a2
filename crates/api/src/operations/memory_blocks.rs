//! Operations on the blocks of context memory and on their texts.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::body_with_text;
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::operations::receipts::{admit_purge, issue_of};
use crate::operations::writers::{with_notifications_of, writer_of};
use access::{Caller, Effect, Needs};
use base::error::Result;
use base::ids::Id;
use base::json::{Count, Limit};
use lifecycle::receipt::Receipt;
use memory::block::{Block, BlockContent, read};
use memory::budget::MAX_CONTENT_BYTES;
use memory::content::MAX_VERSIONS;
use memory::definition::DefineBlock;
use memory::definition::Definition;
use memory::definitions::{define, find_definition, get_definition, load_definitions, remove};
use memory::entries::set;
use memory::entry_rows::find_entry;
use memory::entry_text::EntryText;
use memory::kind::BlockKind;
use memory::label::Label;
use memory::origin::{Marks, MarksChange, Origin};
use memory::purge::purge_block;
use memory::skills::SkillText;
use memory::skills::put;
use memory::view::read_whole_blocks;
use memory::write::Versions;
use memory::write::{
    NewContent, Placement, clear, find_item_version, read_versions, revert, write,
};
use memory::writer::{MemoryWriter, StatedOrigin};
use memory::{BlockScope, Memory};

impl Operation for DefineBlock {
    const NAME: &'static str = "defineBlock";
    // A block that has or had a `source` also requires the secret.
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for DefineBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        BlockScope::get(agent.db, self.session_id.as_ref())?;
        let definition = self.into_definition()?;
        let is_owner = *agent.caller == Caller::Owner;
        let has_rules = definition.retention.is_some();
        let block = define(&agent.memory(), definition, is_owner).await?;
        agent.schedule_retention(has_rules);
        Reply::json(&block)
    }
}

/// Removes a block.
///
/// The block's text returns if a block with the same label is defined, unless `purge` is
/// true. With `purge`, its text, entries, documents and versions are in no table after the
/// call, and the answer is a receipt. Texts stored elsewhere are not deleted, since others
/// may share them. Removing a block that has a `source` requires the Worker's secret.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveBlock {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct RemovedBlock {
    /// `false`: there was nothing to remove.
    removed: bool,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl Operation for RemoveBlock {
    const NAME: &'static str = "removeBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = RemovedBlock;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for RemoveBlock {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let is_owner = *agent.caller == Caller::Owner;
        let memory = agent.memory();
        if self.purge {
            admit_purge(agent, Self::NAME)?;
            let purged = purge_block(&memory, scope, &self.label, is_owner)?;
            let answer = RemovedBlock {
                removed: purged.existed,
                receipt: Some(issue_of(agent, Self::NAME, &purged.erasure, purged.home)?),
            };
            return Ok(Reply::json(&answer)?.purged(purged.erasure.left));
        }
        let removed = remove(&memory, scope, &self.label, false, is_owner)?;
        Reply::json(&RemovedBlock {
            removed,
            receipt: None,
        })
    }
}

/// Shows a block; `null` if there is none.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlock {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
}

impl Operation for GetBlock {
    const NAME: &'static str = "getBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Option<Block>;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        match find_definition(&memory, scope, &self.label)? {
            Some(block) => Reply::json(&read(&memory, &block).await?),
            None => Ok(Reply::text("null".to_owned())),
        }
    }
}

/// Shows all blocks of the agent, or of one session, in the order of their definition.
///
/// If the blocks have more than 4 MiB in total, the call is refused. Then read them one by one with
/// `getBlock`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlocks {
    /// The session that the blocks belong to. Default: the agent.
    session_id: Option<Id>,
    /// `false`: only the definitions, without reading contents from other sources.
    #[serde(default = "yes")]
    contents: bool,
}

fn yes() -> bool {
    true
}

impl Operation for GetBlocks {
    const NAME: &'static str = "getBlocks";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Vec<Block>;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetBlocks {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let defined = load_definitions(&memory, scope)?;
        if !self.contents {
            let unavailable =
                || BlockContent::unavailable("its content was not requested".to_owned());
            let blocks: Vec<_> = (defined.iter())
                .map(|block| Block::new(block, unavailable()))
                .collect();
            return Reply::json(&blocks);
        }
        Reply::json(&read_whole_blocks(&memory, &defined).await?)
    }
}

/// Replaces the text of a writable block.
///
/// If the block already has this text, nothing is written.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetBlock {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    content: String,
    /// The version that the caller expects; at another the call fails with
    /// `version_conflict`.
    expected_version: Option<Count>,
    /// The reason for the change; stored with the version.
    reason: Option<String>,
    /// The source of the text. Default: `operator` with the Worker's secret, else `user`. Prompts
    /// quote what comes from a tool or a file.
    source: Option<Origin>,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

/// Adds `content` unchanged to the end of a writable block's text: start it with a line
/// break for a new line.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AppendToBlock(SetBlock);

impl Operation for SetBlock {
    const NAME: &'static str = "setBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for SetBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        self.write(agent, Placement::Whole).await
    }
}

impl Operation for AppendToBlock {
    const NAME: &'static str = "appendToBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.0.session_id.as_ref()
    }
}

impl RunWaiting for AppendToBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        self.0.write(agent, Placement::Appended).await
    }
}

impl SetBlock {
    async fn write(self, agent: &Agent<'_>, placement: Placement) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let origin = StatedOrigin {
            source: self.source,
            events: &[],
        };
        let writer = origin.writer(agent.caller, self.session_id.as_ref())?;
        let text = NewContent {
            content: &self.content,
            placement,
            expected_version: self.expected_version.map(|version| version.0),
            reason: self.reason.as_deref(),
            writer: with_notifications_of(agent, writer, self.delivery_id.as_ref()),
        };
        Reply::json(&write(&memory, &block, &text).await?)
    }
}

/// Shows who wrote what to a block, and when, newest first.
///
/// The newest 50 versions are stored, up to 8 MiB together. With `key`, shows the versions
/// of that entry or document, even after it was deleted: the newest 20 earlier versions of
/// an entry are stored, and 10 of a document.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlockVersions {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    /// An entry of a searchable block, or a document of a loadable block.
    key: Option<String>,
    #[serde(default)]
    limit: Limit<MAX_VERSIONS, MAX_VERSIONS>,
}

impl Operation for GetBlockVersions {
    const NAME: &'static str = "getBlockVersions";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Versions;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetBlockVersions {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        Reply::json(&read_versions(&memory, &block, self.key.as_deref(), self.limit.0).await?)
    }
}

/// Restores an old version of a block, as a new version. With `key`, restores that entry or
/// document, even if it was deleted.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevertBlock {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    /// An entry of a searchable block, or a document of a loadable block.
    key: Option<String>,
    /// 0: the default content of a block.
    version: Count,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

impl Operation for RevertBlock {
    const NAME: &'static str = "revertBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for RevertBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let writer = writer_of(agent, self.session_id.as_ref(), self.delivery_id.as_ref());
        let Some(key) = &self.key else {
            return Reply::json(&revert(&memory, &block, self.version.0, writer).await?);
        };
        Reply::json(&revert_item(&memory, &block, key, self.version.0, writer).await?)
    }
}

async fn revert_item(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    version: i64,
    writer: MemoryWriter<'_>,
) -> Result<Block> {
    let Some(old) = find_item_version(memory, block, key, version).await? else {
        return read(memory, block).await;
    };
    // The restored text keeps its original source.
    let events: Vec<Id> = old
        .events
        .into_iter()
        .filter_map(|id| Id::parse(id).ok())
        .collect();
    let writer = MemoryWriter {
        source: old.source,
        events: &events,
        is_narrowed: old.is_narrowed,
        ..writer
    };
    let marks = MarksChange::to(Marks {
        metadata: old.metadata,
        tags: old.tags,
    });
    match block.kind {
        BlockKind::Searchable => {
            let mut supersedes = old.validity.supersedes;
            let mut outcome = Ok(true);
            // The entries that the version replaced may have been deleted.
            supersedes.retain(|key| match find_entry(memory.db, block, key) {
                Ok(found) => found.is_some(),
                Err(error) => {
                    outcome = Err(error);
                    false
                }
            });
            outcome?;
            let text = EntryText {
                key,
                title: old.title.as_deref(),
                content: &old.content,
                valid_from: old.validity.valid_from,
                valid_until: old.validity.valid_until,
                supersedes: Some(&supersedes),
                marks,
            };
            set(memory, block, &text, writer).await?;
        }
        BlockKind::Loadable | BlockKind::Readonly | BlockKind::Writable => {
            let text = SkillText {
                key,
                content: &old.content,
                description: old.title.as_deref(),
                marks,
            };
            put(memory, block, &text, writer).await?;
        }
    }
    read(memory, block).await
}

/// Resets the writable blocks to their default content.
///
/// Only blocks that are stored in this agent are cleared; others are not changed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClearBlocks {
    /// The session that the blocks belong to. Default: the agent.
    session_id: Option<Id>,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
pub struct Cleared {
    /// The number of blocks that had a different text.
    cleared: i64,
}

impl Operation for ClearBlocks {
    const NAME: &'static str = "clearBlocks";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Cleared;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for ClearBlocks {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let writer = writer_of(agent, self.session_id.as_ref(), self.delivery_id.as_ref());
        let cleared = clear(&agent.memory(), scope, writer)?;
        Reply::json(&Cleared { cleared })
    }
}
