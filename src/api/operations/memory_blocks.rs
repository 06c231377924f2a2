//! Operations on the blocks of context memory and on their texts.

use serde::{Deserialize, Serialize};

use crate::access::{Caller, Effect, Needs};
use crate::api::limits::body_with_text;
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::base::json::{Count, Limit};
#[cfg(test)]
use crate::memory::block::Block;
use crate::memory::block::read;
use crate::memory::budget::MAX_CONTENT_BYTES;
use crate::memory::configured;
use crate::memory::content::MAX_VERSIONS;
use crate::memory::definition::DefineBlock;
use crate::memory::definitions::{
    define, find_definition, get_definition, load_definitions, remove,
};
use crate::memory::label::Label;
use crate::memory::view::read_whole_blocks;
#[cfg(test)]
use crate::memory::write::Versions;
use crate::memory::write::{NewContent, Placement, clear, read_versions, revert, write};
use crate::memory::{BlockScope, MemoryWriter};

impl Operation for DefineBlock {
    const NAME: &'static str = "defineBlock";
    // And the secret, where it has a `source`, or had one.
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    #[cfg(test)]
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for DefineBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        BlockScope::get(agent.db, self.session_id.as_ref())?;
        let definition = self.into_definition(agent.name)?;
        let is_owner = *agent.caller == Caller::Owner;
        Reply::json(&define(&agent.memory(), definition, is_owner).await?)
    }
}

/// Removes a block.
///
/// What it holds is kept for a block of the same label, unless `purge` is true. One
/// that has a `source` is removed with the Worker's secret.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveBlock {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasRemoved {
    /// `false`: there was nothing to remove.
    removed: bool,
}

impl Operation for RemoveBlock {
    const NAME: &'static str = "removeBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    #[cfg(test)]
    type Output = WasRemoved;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for RemoveBlock {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let is_owner = *agent.caller == Caller::Owner;
        let removed = remove(&agent.memory(), scope, &self.label, self.purge, is_owner)?;
        Reply::json(&WasRemoved { removed })
    }
}

/// Shows a block, or `null`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlock {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
}

impl Operation for GetBlock {
    const NAME: &'static str = "getBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
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
/// More than 4 MiB of them are refused: `getBlock` reads each by itself.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlocks {
    /// The session that they belong to. Left out: the agent.
    session_id: Option<Id>,
}

impl Operation for GetBlocks {
    const NAME: &'static str = "getBlocks";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
    type Output = Vec<Block>;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for GetBlocks {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        // Here a mistake in the deployed blocks is said; conversations go on without them.
        if scope == BlockScope::Agent
            && let Some(mistake) = configured::load(&memory).mistake
        {
            return Err(mistake);
        }
        let blocks = read_whole_blocks(&memory, &load_definitions(&memory, scope)?).await?;
        Reply::json(&blocks)
    }
}

/// Replaces the text of a writable block.
///
/// A text that is the block's already writes nothing.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetBlock {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    content: String,
    /// The version that is known; at another one it fails with `version_conflict`.
    expected_version: Option<Count>,
    /// Kept with the version.
    reason: Option<String>,
}

/// Adds to the end of a writable block's text, as it is: a new line begins with
/// a line break of yours.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppendToBlock {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    content: String,
    /// The version that is known; at another one it fails with `version_conflict`.
    expected_version: Option<Count>,
    /// Kept with the version.
    reason: Option<String>,
}

impl Operation for SetBlock {
    const NAME: &'static str = "setBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    #[cfg(test)]
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for SetBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let text = NewContent {
            content: &self.content,
            placement: Placement::Whole,
            expected_version: self.expected_version.map(|version| version.0),
            reason: self.reason.as_deref(),
            writer: writer(self.session_id.as_ref()),
        };
        write_text(agent, self.session_id.as_ref(), &self.label, &text).await
    }
}

impl Operation for AppendToBlock {
    const NAME: &'static str = "appendToBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    #[cfg(test)]
    type Output = Block;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for AppendToBlock {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let text = NewContent {
            content: &self.content,
            placement: Placement::Appended,
            expected_version: self.expected_version.map(|version| version.0),
            reason: self.reason.as_deref(),
            writer: writer(self.session_id.as_ref()),
        };
        write_text(agent, self.session_id.as_ref(), &self.label, &text).await
    }
}

fn writer(session_id: Option<&Id>) -> MemoryWriter<'_> {
    MemoryWriter {
        session_id,
        ..MemoryWriter::default()
    }
}

async fn write_text(
    agent: &Agent<'_>,
    session_id: Option<&Id>,
    label: &Label,
    text: &NewContent<'_>,
) -> Result<Reply> {
    let scope = BlockScope::get(agent.db, session_id)?;
    let memory = agent.memory();
    let block = get_definition(&memory, scope, label)?;
    Reply::json(&write(&memory, &block, text).await?)
}

/// Shows who wrote what into a block, and when, newest first.
///
/// The newest 50 versions are kept, and 8 MiB of them.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBlockVersions {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    limit: Limit<MAX_VERSIONS, MAX_VERSIONS>,
}

impl Operation for GetBlockVersions {
    const NAME: &'static str = "getBlockVersions";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    #[cfg(test)]
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
        Reply::json(&read_versions(&memory, &block, self.limit.0).await?)
    }
}

/// Writes an old version's text into a block again, as a new version.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevertBlock {
    /// The session that it belongs to. Left out: the agent.
    session_id: Option<Id>,
    label: Label,
    /// 0: the default content.
    version: Count,
}

impl Operation for RevertBlock {
    const NAME: &'static str = "revertBlock";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    #[cfg(test)]
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
        let writer = writer(self.session_id.as_ref());
        Reply::json(&revert(&memory, &block, self.version.0, writer).await?)
    }
}

/// Puts the writable blocks back to their default content.
///
/// Those that live in this agent: what others keep stays.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClearBlocks {
    /// The session that they belong to. Left out: the agent.
    session_id: Option<Id>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cleared {
    /// Blocks that held something else.
    cleared: i64,
}

impl Operation for ClearBlocks {
    const NAME: &'static str = "clearBlocks";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    #[cfg(test)]
    type Output = Cleared;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for ClearBlocks {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let writer = writer(self.session_id.as_ref());
        let cleared = clear(&agent.memory(), scope, writer)?;
        Reply::json(&Cleared { cleared })
    }
}
