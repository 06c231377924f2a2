//! Blocks of memory.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::blocks_shapes::{
    Block, BlockKind, BlockRetention, BlockSource, Cleared, Versions, WasRemoved, WhenChanged,
};
use super::later_shapes::Origin;
use crate::Object;
use crate::operation::Operation;

/// Defines a block, or changes its definition. A block that exists keeps its content.
///
/// A `source` stores the content outside this agent. Setting one needs the Worker's secret.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DefineBlock {
    pub label: String,
    pub kind: BlockKind,
    /// The text of a readonly or writable block until the block is first written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_content: Option<String>,
    /// One line, which the block's header in the prompt shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    /// Custom data of the block, for filtering. At most 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Whether the model may write the block with its tools. Operations always may.
    /// Default: `true` if the content is stored in this agent, or in an agent named by
    /// placeholders of this agent's name; else `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_writes: Option<bool>,
    /// The block's retention rules. Omitted fields use the rules of the session or the
    /// agent. Setting them requires the Worker's secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<BlockRetention>,
    /// The session that the block belongs to. Default: the block belongs to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<BlockSource>,
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How running conversations receive a change. Default: `remind` if another agent
    /// stores the content, since others write it, too; else `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_changed: Option<WhenChanged>,
}

impl DefineBlock {
    #[must_use]
    pub fn new(label: impl Into<String>, kind: BlockKind) -> Self {
        Self {
            label: label.into(),
            kind,
            default_content: None,
            description: None,
            max_tokens: None,
            metadata: None,
            model_writes: None,
            retention: None,
            session_id: None,
            source: None,
            tags: None,
            when_changed: None,
        }
    }
}

setters! {
    DefineBlock:
    default_content: impl Into<String>;
    description: impl Into<String>;
    max_tokens: i64;
    metadata: Object;
    model_writes: bool;
    retention: BlockRetention;
    session_id: impl Into<String>;
    source: BlockSource;
    tags: Vec<String>;
    when_changed: WhenChanged;
}

impl Operation for DefineBlock {
    type Output = Block;
    const NAME: &'static str = "defineBlock";
    const READS: bool = false;
}

/// Removes a block.
///
/// The block's text returns if a block with the same label is defined, unless `purge` is true. With
/// `purge`, its text, entries, documents and versions are in no table after the call, and the
/// answer is a receipt. Texts stored elsewhere are not deleted, since others may share them.
/// Removing a block that has a `source` requires the Worker's secret.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RemoveBlock {
    pub label: String,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RemoveBlock {
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            purge: None,
            session_id: None,
        }
    }
}

setters! {
    RemoveBlock:
    purge: bool;
    session_id: impl Into<String>;
}

impl Operation for RemoveBlock {
    type Output = WasRemoved;
    const NAME: &'static str = "removeBlock";
    const READS: bool = false;
}

/// Shows a block; `null` if there is none.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBlock {
    pub label: String,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetBlock {
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            session_id: None,
        }
    }
}

setters! {
    GetBlock:
    session_id: impl Into<String>;
}

impl Operation for GetBlock {
    type Output = Option<Block>;
    const NAME: &'static str = "getBlock";
    const READS: bool = true;
}

/// Shows all blocks of the agent, or of one session, in the order of their definition.
///
/// If the blocks have more than 4 MiB in total, the call is refused. Then read them one by one with
/// `getBlock`.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBlocks {
    /// `false`: only the definitions, without reading contents from other sources.
    /// Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<bool>,
    /// The session that the blocks belong to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetBlocks {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetBlocks:
    contents: bool;
    session_id: impl Into<String>;
}

impl Operation for GetBlocks {
    type Output = Vec<Block>;
    const NAME: &'static str = "getBlocks";
    const READS: bool = true;
}

/// Replaces the text of a writable block.
///
/// If the block already has this text, nothing is written.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SetBlock {
    pub label: String,
    pub content: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The version that the caller expects; at another the call fails with
    /// `version_conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<i64>,
    /// The reason for the change; stored with the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The source of the text. Default: `operator` with the Worker's secret, else `user`. Prompts
    /// quote what comes from a tool or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
}

impl SetBlock {
    #[must_use]
    pub fn new(label: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            content: content.into(),
            delivery_id: None,
            expected_version: None,
            reason: None,
            session_id: None,
            source: None,
        }
    }
}

setters! {
    SetBlock:
    delivery_id: impl Into<String>;
    expected_version: i64;
    reason: impl Into<String>;
    session_id: impl Into<String>;
    source: Origin;
}

impl Operation for SetBlock {
    type Output = Block;
    const NAME: &'static str = "setBlock";
    const READS: bool = false;
}

/// Adds `content` unchanged to the end of a writable block's text: start it with a line break for a
/// new line.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AppendToBlock {
    pub label: String,
    pub content: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The version that the caller expects; at another the call fails with
    /// `version_conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<i64>,
    /// The reason for the change; stored with the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The source of the text. Default: `operator` with the Worker's secret, else `user`. Prompts
    /// quote what comes from a tool or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
}

impl AppendToBlock {
    #[must_use]
    pub fn new(label: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            content: content.into(),
            delivery_id: None,
            expected_version: None,
            reason: None,
            session_id: None,
            source: None,
        }
    }
}

setters! {
    AppendToBlock:
    delivery_id: impl Into<String>;
    expected_version: i64;
    reason: impl Into<String>;
    session_id: impl Into<String>;
    source: Origin;
}

impl Operation for AppendToBlock {
    type Output = Block;
    const NAME: &'static str = "appendToBlock";
    const READS: bool = false;
}

/// Shows who wrote what to a block, and when, newest first.
///
/// The newest 50 versions are stored, up to 8 MiB together. With `key`, shows the versions of that
/// entry or document, even after it was deleted: the newest 20 earlier versions of an entry are
/// stored, and 10 of a document.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBlockVersions {
    pub label: String,
    /// An entry of a searchable block, or a document of a loadable block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetBlockVersions {
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            key: None,
            limit: None,
            session_id: None,
        }
    }
}

setters! {
    GetBlockVersions:
    key: impl Into<String>;
    limit: i64;
    session_id: impl Into<String>;
}

impl Operation for GetBlockVersions {
    type Output = Versions;
    const NAME: &'static str = "getBlockVersions";
    const READS: bool = true;
}

/// Restores an old version of a block, as a new version. With `key`, restores that entry or
/// document, even if it was deleted.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct RevertBlock {
    pub label: String,
    /// 0: the default content of a block.
    pub version: i64,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// An entry of a searchable block, or a document of a loadable block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RevertBlock {
    #[must_use]
    pub fn new(label: impl Into<String>, version: i64) -> Self {
        Self {
            label: label.into(),
            version,
            delivery_id: None,
            key: None,
            session_id: None,
        }
    }
}

setters! {
    RevertBlock:
    delivery_id: impl Into<String>;
    key: impl Into<String>;
    session_id: impl Into<String>;
}

impl Operation for RevertBlock {
    type Output = Block;
    const NAME: &'static str = "revertBlock";
    const READS: bool = false;
}

/// Resets the writable blocks to their default content.
///
/// Only blocks that are stored in this agent are cleared; others are not changed.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ClearBlocks {
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The session that the blocks belong to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl ClearBlocks {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    ClearBlocks:
    delivery_id: impl Into<String>;
    session_id: impl Into<String>;
}

impl Operation for ClearBlocks {
    type Output = Cleared;
    const NAME: &'static str = "clearBlocks";
    const READS: bool = false;
}
