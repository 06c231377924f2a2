//! `forget`: the model erases an entry or a document for good. A user who says "forget that"
//! expects that it is deleted, so earlier versions are erased, too. To correct a fact, a model
//! rewrites it with `set_context`, which stores the earlier text.

use super::arguments::{Arguments, mistake};
use super::{ContextTool, MemoryTool, Toolbox, describe_blocks, tool_with_text};
use base::error::Result;
use memory::definition::Definition;
use memory::kind::BlockKind;
use memory::purge::{purge_document, purge_entry};

pub const TOOL: ContextTool = ContextTool {
    name: "forget",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// The blocks with entries or documents that the model may write.
fn addressed<'b>(toolbox: &Toolbox<'_>, blocks: &'b [Definition]) -> Vec<&'b Definition> {
    let has_items =
        |block: &&Definition| matches!(block.kind, BlockKind::Searchable | BlockKind::Loadable);
    blocks
        .iter()
        .filter(|block| toolbox.may_write(block))
        .filter(has_items)
        .collect()
}

fn define(toolbox: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(toolbox, blocks);
    if blocks.is_empty() {
        return None;
    }
    let description = format!(
        "Permanently erase an entry or a document from your memory, with its earlier versions. Use \
         this only if the user asks you to forget something: it can't be undone. To correct \
         something, write it again with set_context. Blocks:{}",
        describe_blocks(&blocks)
    );
    Some(tool_with_text(
        TOOL.name,
        description,
        &blocks,
        "The block that contains it.",
        (
            "key",
            "Its key: search_context shows keys in [brackets]; documents are listed by their keys.",
        ),
    ))
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let block = arguments.get_block(&addressed(toolbox, blocks))?;
    let key = arguments.get_text("key")?;
    let memory = &toolbox.memory;
    let purged = match block.kind {
        BlockKind::Loadable => purge_document(memory, block, key).await?,
        BlockKind::Searchable | BlockKind::Writable | BlockKind::Readonly => {
            purge_entry(memory, block, key).await?
        }
    };
    // Nothing may fail between the purge's transaction and this note.
    memory.pages.leave(&purged.erasure.left);
    if purged.existed || purged.erasure.erased.versions > 0 {
        return Ok(format!("Forgotten: {}/{key}.", block.label));
    }
    Err(mistake(format!(
        "{} has no such key. search_context shows the keys of entries in [brackets]; documents are listed by their keys.",
        block.label
    )))
}
