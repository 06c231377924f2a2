//! The blocks that one session sees: the agent's blocks, then the session's own. A session's block
//! hides the agent's block of the same label, unless the session's block comes from a file that its
//! sender did not trust.
//!
//! Reading many blocks takes bounded time, however many backends are unavailable.

use super::backends::TIMEOUT_MS;
use super::block::{Block, BlockContent, read_or_omit};
use super::definition::Definition;
use super::definitions::{find_definition, get_definition, load_definitions};
use super::label::Label;
use super::{BlockScope, Memory};
use base::budget::MAX_ANSWER_BYTES;
use base::error::{Code, Error, Result};
use base::json::written_bytes;

/// How long a read of many blocks waits for all backends together.
const TOTAL_TIMEOUT_MS: i64 = 2 * TIMEOUT_MS;

pub fn load_view(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<Vec<Definition>> {
    let mut blocks = load_definitions(memory, BlockScope::Agent)?;
    if let BlockScope::Session(_) = scope {
        let mut own = load_definitions(memory, scope)?;
        own.retain(|own| !own.is_imported() || !has(&blocks, &own.label));
        blocks.retain(|block| !own.iter().any(|own| own.label.key() == block.label.key()));
        blocks.extend(own);
    }
    Ok(blocks)
}

fn has(blocks: &[Definition], label: &Label) -> bool {
    blocks.iter().any(|block| block.label.key() == label.key())
}

/// The session's block of this label, or the agent's.
pub fn get_in_view(
    memory: &Memory<'_>,
    scope: BlockScope<'_>,
    label: &Label,
) -> Result<Definition> {
    if let BlockScope::Session(_) = scope
        && let Some(own) = find_definition(memory, scope, label)?
    {
        if own.is_imported()
            && let Some(agents) = find_definition(memory, BlockScope::Agent, label)?
        {
            return Ok(agents);
        }
        return Ok(own);
    }
    get_definition(memory, BlockScope::Agent, label)
}

/// The blocks that a scope sees, read from every backend. A block that doesn't fit in the answer
/// has the reason instead of its content.
pub async fn read_view(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<Vec<Block>> {
    read_blocks(memory, &load_view(memory, scope)?).await
}

/// As [`read_view`], for a prompt that is stored.
pub async fn read_for_prompt(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<Vec<Block>> {
    read_for_storage(memory, async || read_view(memory, scope).await).await
}

/// How often a text that will be stored is read.
const MAX_READS: usize = 5;

/// Reads what the caller will store, without another await before that. A backend may take long to
/// answer. If a purge erases something in the meantime, `read` is repeated, so that nothing is
/// stored that was erased.
pub async fn read_for_storage<T>(
    memory: &Memory<'_>,
    read: impl AsyncFn() -> Result<T>,
) -> Result<T> {
    for _ in 0..MAX_READS {
        let purges = memory.pages.all_purges();
        let value = read().await?;
        if memory.pages.all_purges() == purges {
            return Ok(value);
        }
    }
    let error = Error::new(
        Code::RateLimited,
        "Memory was erased repeatedly while it was read. Try again in 1 s.",
    );
    Err(error.with_retry_after(1))
}

/// The blocks. Fails if one answer can't contain them all.
pub async fn read_whole_blocks(memory: &Memory<'_>, blocks: &[Definition]) -> Result<Vec<Block>> {
    let read = read_blocks(memory, blocks).await?;
    if read.iter().any(is_left_out) {
        let error = Error::new(
            Code::PayloadTooLarge,
            format!(
                "The blocks together exceed {MAX_ANSWER_BYTES} bytes, the limit of one answer. \
                 Read each by itself with `getBlock`."
            ),
        );
        return Err(error.with("limit", MAX_ANSWER_BYTES));
    }
    Ok(read)
}

/// Why a block has no content when the answer is full.
const LEFT_OUT: &str = "the blocks before it already fill the limit";

fn is_left_out(block: &Block) -> bool {
    block.unavailable.as_deref() == Some(LEFT_OUT)
}

/// Reads blocks from their backends. If a backend is unavailable, its block has the reason.
pub async fn read_blocks(memory: &Memory<'_>, blocks: &[Definition]) -> Result<Vec<Block>> {
    let started_ms = memory.host.now_ms();
    let mut read = Vec::with_capacity(blocks.len());
    let mut bytes = 0;
    for block in blocks {
        let is_late = memory.host.now_ms() - started_ms >= TOTAL_TIMEOUT_MS;
        let mut block = if is_late && !block.backend().is_this_object() {
            Block::new(
                block,
                BlockContent::unavailable("other sources took too long".to_owned()),
            )
        } else {
            read_or_omit(memory, block).await?
        };
        if bytes + written_bytes(&block.content) > MAX_ANSWER_BYTES {
            block.content = String::new();
            block.unavailable = Some(LEFT_OUT.to_owned());
        }
        bytes += written_bytes(&block.content);
        read.push(block);
    }
    Ok(read)
}
