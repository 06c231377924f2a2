//! `search_context`: the model searches a searchable block.

use super::arguments::Arguments;
use super::{ContextTool, MemoryTool, Toolbox, blocks_of_kind, describe_blocks, tool_with_text};
use crate::base::error::Result;
use crate::memory::definition::Definition;
use crate::memory::kind::BlockKind;
use crate::vectors::entries::search;

pub const TOOL: ContextTool = ContextTool {
    name: "search_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// How many entries a model gets, and how many characters of each.
const MAX_RESULTS: i64 = 5;
const MAX_ENTRY_CHARS: usize = 2_000;

fn addressed(blocks: &[Definition]) -> Vec<&Definition> {
    blocks_of_kind(blocks, BlockKind::Searchable)
}

fn define(_: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(blocks);
    if blocks.is_empty() {
        return None;
    }
    let description = format!(
        "Search what is kept in a block and not shown in it. Gives the best matches, best first. Words match in all their forms; \"quoted phrases\" match as they stand. Blocks:{}",
        describe_blocks(&blocks)
    );
    Some(tool_with_text(
        TOOL.name,
        description,
        &blocks,
        "The block to search.",
        ("query", "What to look for, in a few words."),
    ))
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let block = arguments.get_block(&addressed(blocks))?;
    let query = arguments.get_text("query")?;
    let found = search(&toolbox.memory, block, query, MAX_RESULTS).await?;
    let results = found.results;
    if results.is_empty() {
        return Ok(format!(
            "Nothing in {} matches. Try other words.",
            block.label
        ));
    }
    let shown: Vec<String> = results
        .iter()
        .map(|result| {
            let name = match (&result.title, &result.key) {
                (Some(title), Some(key)) => format!("[{key}] {title}\n"),
                (None, Some(key)) => format!("[{key}]\n"),
                (Some(title), None) => format!("{title}\n"),
                (None, None) => String::new(),
            };
            format!("{name}{}", cut(&result.content))
        })
        .collect();
    Ok(shown.join("\n\n"))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ENTRY_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
