//! The fixed parts that every turn sends before its messages: the system prompt and the
//! tools.
//!
//! If a frozen prompt exists, turns send it, so its tokens are counted. Otherwise the
//! prompt is rendered from the current blocks and counted, without freezing it.

use super::estimate::PromptOverhead;
use crate::tools::{Toolbox, load_tools};
use base::error::Result;
use base::ids::Id;
use base::tokens;
use conversation::session::last_turns::load_calibration;
use memory::block::{Block, load_content_here};
use memory::frozen::find_frozen;
use memory::prompt::{PromptFormat, render};
use memory::view::{load_view, read_view};
use memory::{BlockScope, Memory};
use models::ToolDefinition;
use store::config::{Config, load_config};

/// Counts the tokens of the prompt and the tools. If no prompt is frozen yet, reads the
/// session's blocks from all their backends. `others` are the tools other than the memory
/// tools.
pub async fn read_fixed(
    memory: &Memory<'_>,
    session_id: &Id,
    others: &[ToolDefinition],
) -> Result<PromptOverhead> {
    let scope = BlockScope::Session(session_id);
    let prompt = match find_frozen(memory.db, scope)? {
        Some(frozen) => frozen.prompt,
        None => render(&read_view(memory, scope).await?, PromptFormat::Text),
    };
    count(memory, session_id, &prompt, others)
}

/// Counts the tokens of the prompt and the tools without requests to other backends. If no
/// prompt is frozen yet, blocks that are stored elsewhere are not counted.
pub fn load_fixed(
    memory: &Memory<'_>,
    session_id: &Id,
    others: &[ToolDefinition],
) -> Result<PromptOverhead> {
    let scope = BlockScope::Session(session_id);
    let prompt = match find_frozen(memory.db, scope)? {
        Some(frozen) => frozen.prompt,
        None => {
            let mut blocks = Vec::new();
            for block in load_view(memory, scope)? {
                if block.backend().is_this_object() {
                    blocks.push(Block::new(&block, load_content_here(memory, &block)?));
                }
            }
            render(&blocks, PromptFormat::Text)
        }
    };
    count(memory, session_id, &prompt, others)
}

fn count(
    memory: &Memory<'_>,
    session_id: &Id,
    prompt: &str,
    others: &[ToolDefinition],
) -> Result<PromptOverhead> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let calibration = load_calibration(memory.db, session_id)?;
    let instructions = config.system_instructions.0.iter();
    let system_prompt =
        tokens::estimate(prompt) + instructions.map(|text| tokens::estimate(text)).sum::<i64>();
    let mut tools = load_tools(&toolbox(memory, &config, session_id))?;
    for tool in others {
        if !tools.iter().any(|known| known.name == tool.name) {
            tools.push(tool.clone());
        }
    }
    Ok(PromptOverhead {
        system_prompt: calibration.correct(system_prompt),
        tools: calibration.correct(tools_tokens(&tools)),
        calibration,
    })
}

/// The same toolbox as that of a turn.
fn toolbox<'a>(memory: &Memory<'a>, config: &'a Config, session_id: &'a Id) -> Toolbox<'a> {
    Toolbox {
        memory: *memory,
        config,
        session_id: Some(session_id),
        turn_id: None,
        event_id: None,
        is_silent: false,
        untrusted: None,
        only_session: None,
        writes_agent: true,
    }
}

/// The estimated tokens of tool definitions, without the correction.
pub fn tools_tokens(tools: &[ToolDefinition]) -> i64 {
    tools.iter().map(tool_tokens).sum()
}

fn tool_tokens(tool: &ToolDefinition) -> i64 {
    [&tool.name, &tool.description, tool.parameters.get()]
        .into_iter()
        .map(tokens::estimate)
        .sum()
}
