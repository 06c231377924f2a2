//! `unload_context`: the model removes a document from its context.

use super::arguments::{Arguments, mistake};
use super::load_context::addressed;
use super::{ContextTool, MemoryTool, Toolbox, tool_with_text};
use base::error::Result;
use base::quoted::{Untrusted, quote};
use memory::definition::Definition;
use memory::skills::loaded;

pub const TOOL: ContextTool = ContextTool {
    name: "unload_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

fn define(_: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(blocks);
    if blocks.is_empty() {
        return None;
    }
    let description =
        "Remove a loaded document from your context when you no longer need it. You can load it \
         again."
            .to_owned();
    Some(tool_with_text(
        TOOL.name,
        description,
        &blocks,
        "The block that lists the document.",
        ("key", "The key that it was loaded by."),
    ))
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let block = arguments.get_block(&addressed(blocks))?;
    let key = arguments.get_text("key")?;
    let unloaded = match toolbox.session_id {
        Some(session_id) => loaded::unload(toolbox.memory.db, session_id, &block.label, key)?,
        None => false,
    };
    if unloaded {
        return Ok(format!("Unloaded {}/{key}.", block.label));
    }
    Err(mistake(not_loaded(toolbox, block)?))
}

fn not_loaded(toolbox: &Toolbox<'_>, block: &Definition) -> Result<String> {
    let documents = match toolbox.session_id {
        Some(session_id) => loaded::load_context_documents(toolbox.memory.db, session_id)?,
        None => Vec::new(),
    };
    let keys: Vec<String> = documents
        .iter()
        .filter(|document| document.content.is_some())
        .filter(|document| document.label.to_lowercase() == block.label.key())
        .map(|document| format!("\"{}\"", quote(Untrusted::DocumentKey, &document.key)))
        .collect();
    Ok(if keys.is_empty() {
        format!("No document of {} is loaded.", block.label)
    } else {
        format!(
            "That document is not loaded. Loaded documents of {}: {}.",
            block.label,
            keys.join(", ")
        )
    })
}
