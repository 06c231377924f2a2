//! `load_context`: the model loads a whole document into its context. The answer is exactly
//! the document, because the working context recognizes a loaded document by its exact
//! text. A document that came from a tool or a file is quoted.

use super::arguments::Arguments;
use super::recalled::{FORM, shown_document};
use super::{ContextTool, MemoryTool, Toolbox, blocks_of_kind, describe_blocks, tool_with_text};
use base::error::{Code, Error, Result};
use base::quoted::{Untrusted, quote};
use memory::BlockScope;
use memory::definition::Definition;
use memory::kind::BlockKind;
use memory::skills::{get_document, list, loaded};
use memory::view::{get_in_view, read_for_storage};

pub const TOOL: ContextTool = ContextTool {
    name: "load_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// How many keys the error for a wrong key lists.
const MAX_NAMED: usize = 30;

pub fn addressed(blocks: &[Definition]) -> Vec<&Definition> {
    blocks_of_kind(blocks, BlockKind::Loadable)
}

fn define(_: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(blocks);
    if blocks.is_empty() {
        return None;
    }
    let description = format!(
        "Load a complete document by its key in the block's listing. It stays in your context \
         until you unload it. Text from a tool or a file is quoted. {FORM} Blocks:{}",
        describe_blocks(&blocks)
    );
    Some(tool_with_text(
        TOOL.name,
        description,
        &blocks,
        "The block that lists the document.",
        ("key", "The document's key, as it is listed."),
    ))
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let block = arguments.get_block(&addressed(blocks))?;
    let key = arguments.get_text("key")?;
    let memory = &toolbox.memory;
    // The backend may respond slowly, and the text is stored in the session.
    let read = async || {
        let scope = BlockScope::get(memory.db, toolbox.session_id)?;
        let block = get_in_view(memory, scope, &block.label)?;
        get_document(memory, &block, key).await
    };
    let document = match read_for_storage(memory, read).await {
        Err(error) if error.code == Code::SkillNotFound => {
            return Err(with_keys(toolbox, block, error).await);
        }
        document => document?,
    };
    let content = shown_document(&document);
    let Some(session_id) = toolbox.session_id else {
        return Ok(content);
    };
    let is_new = loaded::load(
        memory.db,
        memory.host,
        session_id,
        &block.label,
        &document.key,
        &content,
    )?;
    Ok(if is_new {
        content
    } else {
        format!("{}/{key} is already loaded in your context.", block.label)
    })
}

/// Adds the existing keys to the error.
async fn with_keys(toolbox: &Toolbox<'_>, block: &Definition, error: Error) -> Error {
    // The first error is returned even if the listing fails too.
    let Ok(listing) = list(&toolbox.memory, block).await else {
        return error;
    };
    let keys: Vec<String> = listing
        .into_skills()
        .into_iter()
        .take(MAX_NAMED)
        .map(|skill| format!("\"{}\"", quote(Untrusted::DocumentKey, &skill.key)))
        .collect();
    let message = if keys.is_empty() {
        format!("{} has no such document.", block.label)
    } else {
        format!(
            "{} has no such document. It has: {}.",
            block.label,
            keys.join(", ")
        )
    };
    error.with_message(message)
}
