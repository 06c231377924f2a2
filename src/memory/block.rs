//! A block as it is shown: its definition and what it holds, fetched from
//! wherever it lives.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Memory;
use super::content::find_newest;
use super::definition::{Definition, WhenChanged};
use super::homes::agent::{self, RemoteBlock};
use super::homes::{bucket, find_unavailable, service, why_away};
use super::source::{BlockHome, BlockSource};
use super::{entries, skills};
use crate::base::error::{Error, Result};
use crate::base::tokens;
use crate::memory::kind::BlockKind;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Block {
    pub label: String,
    pub kind: BlockKind,
    pub description: Option<String>,
    pub max_tokens: Option<i64>,
    /// What stands in the prompt: of a searchable block how many entries it has,
    /// of a loadable one the listing of its documents.
    pub content: String,
    /// Of the content, estimated.
    pub tokens: i64,
    /// Counts the writes of its text; 0: never written.
    pub version: i64,
    #[cfg_attr(test, schemars(extend("enum" = ["agent", "session"])))]
    pub scope: String,
    /// `null`: it lives in this agent.
    pub source: Option<BlockSource>,
    pub when_changed: WhenChanged,
    /// Whether the model may write it with its tools.
    #[serde(default)]
    pub model_writes: bool,
    /// `null`: it is deployed with the Worker and was never written.
    pub updated_at: Option<i64>,
    /// Why there is no content: its home gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// What a block holds.
pub struct BlockContent {
    pub content: String,
    pub version: i64,
    pub updated_at: Option<i64>,
    pub unavailable: Option<String>,
}

impl BlockContent {
    fn text(content: String) -> Self {
        Self {
            content,
            version: 0,
            updated_at: None,
            unavailable: None,
        }
    }

    pub fn away(reason: String) -> Self {
        Self {
            unavailable: Some(reason),
            ..Self::text(String::new())
        }
    }
}

impl Block {
    pub fn new(definition: &Definition, held: BlockContent) -> Self {
        Self {
            label: definition.label.as_str().to_owned(),
            kind: definition.kind,
            description: definition.description.clone(),
            max_tokens: definition.max_tokens,
            tokens: tokens::estimate(&held.content),
            content: held.content,
            version: held.version,
            scope: if definition.is_sessions() {
                "session"
            } else {
                "agent"
            }
            .to_owned(),
            source: definition.source.clone(),
            when_changed: definition.when_changed,
            model_writes: definition.model_may_write(),
            updated_at: held.updated_at.max(definition.defined_at),
            unavailable: held.unavailable,
        }
    }
}

/// The block. A home that is away is said so in it; one that isn't configured
/// is an error.
pub async fn read(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let held = match hold(memory, block).await {
        Err(error) => match find_unavailable(&error) {
            Some(reason) => BlockContent::away(reason.to_owned()),
            None => return Err(error),
        },
        held => held?,
    };
    Ok(Block::new(block, held))
}

/// As [`read`], where no home may fail the whole: only this object's storage can.
pub async fn read_or_omit(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let held = match hold(memory, block).await {
        Err(error) => BlockContent::away(why_omitted(error)?),
        held => held?,
    };
    Ok(Block::new(block, held))
}

fn why_omitted(error: Error) -> Result<String> {
    match why_away(&error) {
        Some(reason) => Ok(reason),
        None if error.code.status() < 500 => Ok(error.message),
        None => Err(error),
    }
}

async fn hold(memory: &Memory<'_>, block: &Definition) -> Result<BlockContent> {
    match block.home() {
        BlockHome::Object => hold_here(memory, block),
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            hold_elsewhere(memory, block, home).await
        }
        BlockHome::Bucket { key } => {
            let content = match bucket::get_text(memory, key).await? {
                Some(stored) => stored.content,
                None => block.default_content().to_owned(),
            };
            Ok(BlockContent {
                content,
                ..newest_of(memory, block)?
            })
        }
        BlockHome::Service { binding } if block.kind != BlockKind::Loadable => {
            let told = service::get(memory, block, binding).await?;
            let content = told
                .content
                .unwrap_or_else(|| block.default_content().to_owned());
            Ok(BlockContent {
                content,
                ..newest_of(memory, block)?
            })
        }
        BlockHome::Service { .. } | BlockHome::BucketPrefix { .. } => {
            let listing = skills::list(memory, block).await?;
            Ok(BlockContent::text(introduced(block, &listing.render())))
        }
    }
}

/// What a block holds that lives in this object.
pub fn hold_here(memory: &Memory<'_>, block: &Definition) -> Result<BlockContent> {
    match block.kind {
        BlockKind::Readonly | BlockKind::Writable => newest_of(memory, block),
        BlockKind::Searchable => {
            let count = entries::count(memory.db, block)?;
            let noun = if count == 1 { "entry" } else { "entries" };
            let summary = format!("{count} {noun} indexed.");
            Ok(BlockContent::text(introduced(block, &summary)))
        }
        BlockKind::Loadable => {
            let listing = skills::list_here(memory.db, block)?;
            Ok(BlockContent::text(introduced(block, &listing.render())))
        }
    }
}

/// A summary of what a block holds, after what its definition says of it.
fn introduced(block: &Definition, summary: &str) -> String {
    match block.default_content() {
        "" => summary.to_owned(),
        introduction => format!("{introduction}\n{summary}"),
    }
}

/// The newest version that was written here, or the default content.
pub fn newest_of(memory: &Memory<'_>, block: &Definition) -> Result<BlockContent> {
    Ok(match find_newest(memory.db, block)? {
        Some(newest) => BlockContent {
            content: newest.content,
            version: newest.version,
            updated_at: Some(newest.written_at),
            unavailable: None,
        },
        None => BlockContent::text(block.default_content().to_owned()),
    })
}

async fn hold_elsewhere(
    memory: &Memory<'_>,
    block: &Definition,
    home: RemoteBlock<'_>,
) -> Result<BlockContent> {
    let found: Option<Block> = agent::call(memory, block, home, "getBlock", json!({})).await?;
    let Some(found) = found else {
        // It is made there by the first write.
        return Ok(match block.kind {
            BlockKind::Readonly | BlockKind::Writable => {
                BlockContent::text(block.default_content().to_owned())
            }
            BlockKind::Searchable => BlockContent::text("0 entries indexed.".to_owned()),
            BlockKind::Loadable => {
                BlockContent::text(skills::SkillListing::Skills(Vec::new()).render())
            }
        });
    };
    Ok(BlockContent {
        content: found.content,
        version: found.version,
        updated_at: found.updated_at,
        unavailable: found
            .unavailable
            .map(|reason| format!("Agent `{}`: {reason}", home.name)),
    })
}
