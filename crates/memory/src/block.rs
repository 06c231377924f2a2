//! A block as the API and the prompt show it: its definition, and its content fetched from its
//! backend.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Memory;
use super::backends::agent::{self, RemoteBlock};
use super::backends::{bucket, find_unavailable, service, source_error, unavailable_reason};
use super::content::find_newest;
use super::counts::count_entries;
use super::definition::{Definition, WhenChanged};
use super::skills;
use super::source::{BlockBackend, BlockSource};
use crate::kind::BlockKind;
use crate::origin::{Origin, quoted_text};
use base::error::{Error, Result};
use base::json::json;
use base::tags::{Metadata, Tags};
use base::tokens;
use store::retention::BlockRetention;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Block {
    pub label: String,
    pub kind: BlockKind,
    pub description: Option<String>,
    pub max_tokens: Option<i64>,
    /// The block's text in the prompt. A searchable block shows its number of
    /// entries, a loadable block the list of its documents.
    pub content: String,
    /// Estimated tokens of the content.
    pub tokens: i64,
    /// Counts the writes of the block's text. 0: the text was never written.
    pub version: i64,
    #[schemars(extend("enum" = ["agent", "session"]))]
    pub scope: String,
    /// Where the content is stored. `null`: in this agent.
    pub source: Option<BlockSource>,
    pub when_changed: WhenChanged,
    /// Whether the model may write the block with its tools.
    #[serde(default)]
    pub model_writes: bool,
    /// The block's own retention rules, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<BlockRetention>,
    /// The custom data of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// `null`: the block is deployed with the Worker and was never written.
    pub updated_at: Option<i64>,
    /// The source of a readonly or writable block's text. Absent if the operator wrote the text
    /// through an operation, or the model with its tool. Prompts quote text that comes from a tool
    /// or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_source: Option<Origin>,
    /// Whether the definition comes from an untrusted file. It then hides no block of the
    /// agent, and prompts don't show its description.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The reason why the content is missing: the block's source did not provide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A block's content, and its version.
pub struct BlockContent {
    pub content: String,
    pub version: i64,
    pub updated_at: Option<i64>,
    pub unavailable: Option<String>,
    /// As [`Block::text_source`].
    pub source: Option<Origin>,
}

impl BlockContent {
    fn text(content: String) -> Self {
        Self {
            content,
            version: 0,
            updated_at: None,
            unavailable: None,
            source: None,
        }
    }

    pub fn unavailable(reason: String) -> Self {
        Self {
            unavailable: Some(reason),
            ..Self::text(String::new())
        }
    }
}

impl Block {
    pub fn new(definition: &Definition, loaded: BlockContent) -> Self {
        Self {
            label: definition.label.as_str().to_owned(),
            kind: definition.kind,
            description: definition.description.clone(),
            max_tokens: definition.max_tokens,
            tokens: tokens::estimate(&loaded.content),
            content: loaded.content,
            version: loaded.version,
            scope: if definition.is_sessions() {
                "session"
            } else {
                "agent"
            }
            .to_owned(),
            source: definition.source.clone(),
            when_changed: definition.when_changed,
            model_writes: definition.model_may_write(),
            retention: definition.retention.clone(),
            metadata: definition.metadata.clone(),
            tags: definition.tags.clone(),
            updated_at: loaded.updated_at.max(definition.defined_at),
            text_source: loaded.source.filter(|_| definition.kind.has_content()),
            imported: definition.is_imported(),
            unavailable: loaded.unavailable,
        }
    }
}

/// Reads a block. If its backend is unavailable, the block has the reason. A backend that isn't
/// configured is an error.
pub async fn read(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let loaded = match load_content(memory, block).await {
        Err(error) => match find_unavailable(&error) {
            Some(reason) => BlockContent::unavailable(reason.to_owned()),
            None => return Err(error),
        },
        loaded => loaded?,
    };
    Ok(Block::new(block, loaded))
}

/// Like [`read`], but no backend can cause an error: only this object's storage can.
pub async fn read_or_omit(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let loaded = match load_content(memory, block).await {
        Err(error) => BlockContent::unavailable(why_omitted(error)?),
        loaded => loaded?,
    };
    Ok(Block::new(block, loaded))
}

fn why_omitted(error: Error) -> Result<String> {
    match unavailable_reason(&error) {
        Some(reason) => Ok(reason),
        None if error.code.status() < 500 => Ok(error.into_message()),
        None => Err(error),
    }
}

async fn load_content(memory: &Memory<'_>, block: &Definition) -> Result<BlockContent> {
    match block.backend() {
        BlockBackend::Object => load_content_here(memory, block),
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            load_content_elsewhere(memory, block, backend).await
        }
        BlockBackend::Bucket { key } => {
            let content = match bucket::get_text(memory, key).await? {
                Some(stored) => stored.content,
                None => block.default_content().to_owned(),
            };
            Ok(BlockContent {
                content,
                ..newest_of(memory, block)?
            })
        }
        BlockBackend::Service { binding } if block.kind != BlockKind::Loadable => {
            let answer = service::get(memory, block, binding).await?;
            let content = answer
                .content
                .unwrap_or_else(|| block.default_content().to_owned());
            Ok(BlockContent {
                content,
                ..newest_of(memory, block)?
            })
        }
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Service { .. } | BlockBackend::BucketPrefix { .. } => {
            let listing = skills::list(memory, block).await?;
            Ok(BlockContent::text(introduced(block, &listing.render())))
        }
    }
}

/// The content of a block that is stored in this object.
pub fn load_content_here(memory: &Memory<'_>, block: &Definition) -> Result<BlockContent> {
    match block.kind {
        BlockKind::Readonly | BlockKind::Writable => newest_of(memory, block),
        BlockKind::Searchable => {
            let count = count_entries(memory.db, &block.scope, &block.content_key())?;
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

/// The block's default content, then a summary of the block's own content.
fn introduced(block: &Definition, summary: &str) -> String {
    match block.default_content() {
        "" => summary.to_owned(),
        introduction => match block.origin.filter(|origin| origin.is_quoted()) {
            Some(origin) => format!(
                "{}\n{summary}",
                quoted_text(origin, block.defined_at, introduction)
            ),
            None => format!("{introduction}\n{summary}"),
        },
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
            source: newest.source,
        },
        None => BlockContent {
            source: block.origin,
            ..BlockContent::text(block.default_content().to_owned())
        },
    })
}

async fn load_content_elsewhere(
    memory: &Memory<'_>,
    block: &Definition,
    backend: RemoteBlock<'_>,
) -> Result<BlockContent> {
    let found: Option<Block> = agent::call(memory, block, backend, "getBlock", json!({})).await?;
    let Some(found) = found else {
        // The first write creates the block in the other agent.
        return Ok(match block.kind {
            BlockKind::Readonly | BlockKind::Writable => {
                BlockContent::text(block.default_content().to_owned())
            }
            BlockKind::Searchable => BlockContent::text("0 entries indexed.".to_owned()),
            BlockKind::Loadable => {
                BlockContent::text(skills::listing::SkillListing::Skills(Vec::new()).render())
            }
        });
    };
    Ok(BlockContent {
        content: found.content,
        version: found.version,
        updated_at: found.updated_at,
        unavailable: found
            .unavailable
            .map(|reason| format!("Agent `{}`: {reason}", backend.name)),
        source: found.text_source,
    })
}
