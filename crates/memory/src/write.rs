//! Writes a block's text, after checking permission, budget and expected version. In this object, a
//! write is one transaction. An external backend accepts or refuses the write, and this object
//! records the version afterward.

use crate::content::{MAX_TRIES, too_many_conflicts};
use crate::json_schema::JsonSchema;
use base::budget::AnswerCapacity;
use base::json::{json, written_bytes};
use serde::{Deserialize, Serialize};

use super::backends::agent::{self, RemoteBlock};
use super::backends::{bucket, service, source_error};
use super::block::{Block, BlockContent, newest_of, read};
use super::content::{
    MAX_VERSIONS_BYTES, NewVersion, Version, check_reason, check_version, find_version,
    load_versions, write_version,
};
use super::definition::Definition;
use super::definitions::{load_definitions, version_of};
use super::origin::Origin;
use super::source::BlockBackend;
use super::writer::MemoryWriter;
use super::{BlockScope, Memory};
use crate::budget::{check_budget, check_content};
use crate::entry_rows;
use crate::kind::BlockKind;
use crate::skills::stored;
use base::database::atomically;
use base::error::{Code, Error, Result};

/// A text to write to a block.
#[derive(Clone, Copy)]
pub struct NewContent<'a> {
    pub content: &'a str,
    pub placement: Placement,
    pub expected_version: Option<i64>,
    pub reason: Option<&'a str>,
    pub writer: MemoryWriter<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// Replaces the block's text.
    Whole,
    /// Follows the block's text directly.
    Appended,
    /// Follows the block's text on a new line.
    AppendedLine,
}

impl NewContent<'_> {
    /// The source of the block's text after the write. Appending keeps the source of text
    /// from a tool or a file.
    fn source_after(&self, before: &BlockContent) -> Origin {
        let own = self.writer.origin();
        let source_before = before.source.filter(|source| source.is_quoted());
        match self.placement {
            Placement::Whole => own,
            Placement::Appended | Placement::AppendedLine => {
                source_before.map_or(own, |source_before| source_before.or_less_trusted(own))
            }
        }
    }

    /// Whether a more trusted writer replaces text from a tool or a file with their own. A
    /// model that repeats the text doesn't count.
    fn clears(&self, before: &BlockContent) -> bool {
        let is_quoted = before.source.is_some_and(Origin::is_quoted);
        let is_whole = self.placement == Placement::Whole;
        is_whole && is_quoted && !self.writer.is_tool && !self.writer.origin().is_quoted()
    }

    fn after(&self, before: &str) -> String {
        match self.placement {
            Placement::Whole => self.content.to_owned(),
            Placement::AppendedLine if !before.is_empty() && !before.ends_with('\n') => {
                format!("{before}\n{}", self.content)
            }
            Placement::Appended | Placement::AppendedLine => format!("{before}{}", self.content),
        }
    }
}

fn check_writable(block: &Definition) -> Result<()> {
    match block.kind {
        BlockKind::Writable => Ok(()),
        BlockKind::Readonly => Err(Error::new(
            Code::BlockReadOnly,
            format!(
                "Block `{}` is readonly. To change its text, define it with another `defaultContent`, or change the text at its `source`.",
                block.label
            ),
        )
        .with("label", block.label.as_str())),
        BlockKind::Searchable => Err(Error::invalid(
            "label",
            format!("Block `{}` is searchable: write its entries with `setEntry`.", block.label),
        )),
        BlockKind::Loadable => Err(Error::invalid(
            "label",
            format!("Block `{}` is loadable: write its documents with `putSkill`.", block.label),
        )),
    }
}

/// Writes a text. If it is unchanged, no row is written.
pub async fn write(
    memory: &Memory<'_>,
    block: &Definition,
    text: &NewContent<'_>,
) -> Result<Block> {
    check_writable(block)?;
    check_content("content", text.content)?;
    check_reason(text.reason)?;
    let loaded = match block.backend() {
        BlockBackend::Object | BlockBackend::BucketPrefix { .. } => {
            write_here(memory, block, text)?
        }
        BlockBackend::Bucket { key } => write_in_bucket(memory, block, key, text).await?,
        BlockBackend::Service { binding } => write_in_service(memory, block, binding, text).await?,
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            write_remote(memory, block, backend, text).await?
        }
    };
    Ok(Block::new(block, loaded))
}

/// Writes a text that is stored in this object, in the caller's transaction or in one of
/// its own.
pub fn write_in_object(
    memory: &Memory<'_>,
    block: &Definition,
    text: &NewContent<'_>,
) -> Result<()> {
    check_writable(block)?;
    check_content("content", text.content)?;
    write_here(memory, block, text).map(drop)
}

fn write_here(
    memory: &Memory<'_>,
    block: &Definition,
    text: &NewContent<'_>,
) -> Result<BlockContent> {
    atomically(memory.db, || {
        let before = newest_of(memory, block)?;
        let after = prepare(memory, block, text, &before.content)?;
        let source = text.source_after(&before);
        if after == before.content && !text.clears(&before) {
            return Ok(before);
        }
        let new = new_version(&after, text, source);
        write_version(memory, block, before.version, &new).map(to_content)
    })
}

/// Other writers use the same object in the bucket, including this agent's other requests.
/// So the write succeeds only if the object is unchanged since it was read. Otherwise the
/// new text is computed again from the changed object.
async fn write_in_bucket(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    text: &NewContent<'_>,
) -> Result<BlockContent> {
    let _writing = bucket::begin_put(memory, key, text.content).await?;
    for _ in 0..MAX_TRIES {
        let stored = bucket::get_text(memory, key).await?;
        let before = match &stored {
            Some(stored) => stored.content.as_str(),
            None => block.default_content(),
        };
        let after = prepare(memory, block, text, before)?;
        let etag = stored.as_ref().map(|stored| stored.etag.as_str());
        // The description belongs to the object and is kept when its text changes.
        let description = stored
            .as_ref()
            .and_then(|stored| stored.description.as_deref());
        if after == before || bucket::replace_text(memory, key, etag, &after, description).await? {
            return record(memory, block, &after, before, text);
        }
    }
    Err(too_many_conflicts(block))
}

/// Like [`write_in_bucket`], if the service versions its texts.
async fn write_in_service(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    text: &NewContent<'_>,
) -> Result<BlockContent> {
    let _writing = service::begin_set(memory, block, binding, text.content).await?;
    for _ in 0..MAX_TRIES {
        let stored = service::get(memory, block, binding).await?;
        let before = match &stored.content {
            Some(content) => content.as_str(),
            None => block.default_content(),
        };
        let after = prepare(memory, block, text, before)?;
        if after == before || service::replace(memory, block, binding, &stored, &after).await? {
            return record(memory, block, &after, before, text);
        }
    }
    Err(too_many_conflicts(block))
}

/// The block's text after the write, or an error if the write isn't allowed.
fn prepare(
    memory: &Memory<'_>,
    block: &Definition,
    text: &NewContent<'_>,
    before: &str,
) -> Result<String> {
    check_version(
        &block.label,
        text.expected_version,
        version_of(memory.db, block)?,
    )?;
    let after = text.after(before);
    check_content("content", &after)?;
    check_budget(&block.label, block.max_tokens, &after)?;
    Ok(after)
}

/// Records the version of a text that was written to an external backend.
fn record(
    memory: &Memory<'_>,
    block: &Definition,
    after: &str,
    before: &str,
    text: &NewContent<'_>,
) -> Result<BlockContent> {
    atomically(memory.db, || {
        let newest = newest_of(memory, block)?;
        if after == before {
            return Ok(BlockContent {
                content: after.to_owned(),
                ..newest
            });
        }
        let new = new_version(after, text, text.source_after(&newest));
        write_version(memory, block, newest.version, &new).map(to_content)
    })
}

fn new_version<'a>(content: &'a str, text: &NewContent<'a>, source: Origin) -> NewVersion<'a> {
    NewVersion {
        content,
        reason: text.reason,
        writer: text.writer,
        source,
    }
}

fn to_content(version: Version) -> BlockContent {
    BlockContent {
        content: version.content,
        version: version.version,
        updated_at: Some(version.written_at),
        unavailable: None,
        source: version.source,
    }
}

/// The source of a text, as another agent receives it. `None` for the operator's own text.
fn source_of(writer: MemoryWriter<'_>) -> Option<&'static str> {
    Some(writer.origin())
        .filter(|origin| *origin != Origin::Operator)
        .map(Origin::name)
}

async fn write_remote(
    memory: &Memory<'_>,
    block: &Definition,
    backend: RemoteBlock<'_>,
    text: &NewContent<'_>,
) -> Result<BlockContent> {
    let (operation, content) = match text.placement {
        Placement::Whole => ("setBlock", text.content.to_owned()),
        Placement::Appended => ("appendToBlock", text.content.to_owned()),
        Placement::AppendedLine => {
            let before = read(memory, block).await?.content;
            // The text may change before the append. Only the line break depends on it.
            let after = text.after(&before);
            let added = after.get(before.len()..).unwrap_or(text.content);
            ("appendToBlock", added.to_owned())
        }
    };
    if text.placement == Placement::Whole {
        check_budget(&block.label, block.max_tokens, text.content)?;
    }
    let input = json!({
        "content": content,
        "expectedVersion": text.expected_version,
        "reason": text.reason,
        "source": source_of(text.writer),
    });
    let written: Block = agent::call(memory, block, backend, operation, input).await?;
    Ok(BlockContent {
        content: written.content,
        version: written.version,
        updated_at: written.updated_at,
        unavailable: written.unavailable,
        source: written.text_source,
    })
}

/// Versions of a block's text.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Newest first.
    pub versions: Vec<Version>,
}

pub async fn read_versions(
    memory: &Memory<'_>,
    block: &Definition,
    key: Option<&str>,
    limit: i64,
) -> Result<Versions> {
    check_item(block, key)?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let input = match key {
                Some(key) => json!({"limit": limit, "key": key}),
                None => json!({"limit": limit}),
            };
            agent::call(memory, block, backend, "getBlockVersions", input).await
        }
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object
        | BlockBackend::Bucket { .. }
        | BlockBackend::BucketPrefix { .. }
        | BlockBackend::Service { .. } => {
            let mut versions = match key {
                Some(key) if block.kind == BlockKind::Searchable => {
                    entry_rows::load_versions(memory.db, block, key, limit)?
                }
                Some(key) => stored::load_versions(memory.db, block, key, limit)?,
                None => load_versions(memory.db, block, limit)?,
            };
            let mut capacity = AnswerCapacity::of(MAX_VERSIONS_BYTES as usize);
            versions.retain(|version| capacity.takes(written_bytes(&version.content)));
            Ok(Versions { versions })
        }
    }
}

/// Refuses a key for a block with a single text, and a missing key for a block with
/// several.
fn check_item(block: &Definition, key: Option<&str>) -> Result<()> {
    match key {
        Some(_) if block.kind.has_content() => Err(Error::invalid(
            "key",
            format!("Block `{}` has one text: omit `key`.", block.label),
        )),
        Some(_) | None => Ok(()),
    }
}

/// The version of an entry or a document to restore. `None`: another agent stores the
/// block, and has already restored the version itself.
pub async fn find_item_version(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    version: i64,
) -> Result<Option<Version>> {
    check_item(block, Some(key))?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let input = json!({"key": key, "version": version});
            let _: Block = agent::call(memory, block, backend, "revertBlock", input).await?;
            return Ok(None);
        }
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object
        | BlockBackend::Bucket { .. }
        | BlockBackend::BucketPrefix { .. }
        | BlockBackend::Service { .. } => {}
    }
    let found = match block.kind {
        BlockKind::Searchable => entry_rows::find_version(memory.db, block, key, version)?,
        BlockKind::Loadable | BlockKind::Readonly | BlockKind::Writable => {
            stored::find_version(memory.db, block, key, version)?
        }
    };
    match found {
        Some(old) if old.deleted => Err(Error::invalid(
            "version",
            format!("Version {version} is the deletion of `{key}`. Use an earlier version."),
        )),
        Some(old) => Ok(Some(old)),
        None => Err(Error::invalid(
            "version",
            format!(
                "Block `{}` has no version {version} of `{key}`: it is too old, or never existed. \
                 `getBlockVersions` with `key` lists the existing ones.",
                block.label
            ),
        )),
    }
}

/// Restores an old version's text as a new version. Version 0 is the default content.
pub async fn revert(
    memory: &Memory<'_>,
    block: &Definition,
    version: i64,
    writer: MemoryWriter<'_>,
) -> Result<Block> {
    check_writable(block)?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let input = json!({"version": version});
            let written: Block = agent::call(memory, block, backend, "revertBlock", input).await?;
            let loaded = BlockContent {
                content: written.content,
                version: written.version,
                updated_at: written.updated_at,
                unavailable: written.unavailable,
                source: written.text_source,
            };
            return Ok(Block::new(block, loaded));
        }
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object
        | BlockBackend::Bucket { .. }
        | BlockBackend::BucketPrefix { .. }
        | BlockBackend::Service { .. } => {}
    }
    let (content, source) = match version {
        0 => (block.default_content().to_owned(), block.origin),
        version => find_version(memory.db, block, version)?
            .ok_or_else(|| {
                Error::invalid(
                    "version",
                    format!(
                        "Block `{}` has no version {version}: it is too old, or never existed. \
                         `getBlockVersions` lists the existing ones.",
                        block.label
                    ),
                )
            })
            .map(|old| (old.content, old.source))?,
    };
    // The restored text keeps its original source.
    let writer = MemoryWriter {
        source: source.filter(|source| source.is_quoted()).or(writer.source),
        ..writer
    };
    let text = NewContent {
        content: &content,
        placement: Placement::Whole,
        expected_version: None,
        reason: Some(&format!("Restored version {version}.")),
        writer,
    };
    write(memory, block, &text).await
}

/// Resets the writable blocks that are stored in this object to their default content.
/// Returns how many blocks changed. Blocks in other agents, services and the bucket keep
/// their content, because this agent may share it.
pub fn clear(memory: &Memory<'_>, scope: BlockScope<'_>, writer: MemoryWriter<'_>) -> Result<i64> {
    atomically(memory.db, || {
        let mut cleared = 0;
        for block in load_definitions(memory, scope)? {
            if block.kind != BlockKind::Writable || !block.backend().is_this_object() {
                continue;
            }
            let before = newest_of(memory, &block)?;
            if before.content == block.default_content() {
                continue;
            }
            let new = NewVersion {
                content: block.default_content(),
                reason: Some("Cleared."),
                writer,
                source: block.origin.unwrap_or(writer.origin()),
            };
            write_version(memory, &block, before.version, &new)?;
            cleared += 1;
        }
        Ok(cleared)
    })
}
