//! Renders exactly the request that the session's next turn would send to its model. Sends nothing
//! and writes nothing: no prompt is frozen, and no server is called for its tools. The parts of a
//! turn that come from the client are missing: its message, instructions and tools.

use super::chat_tools::ListTools;
use super::memory_tools::toolbox;
use crate::operation::{Agent, Operation, Reply};
use access::permit;
use base::budget::MAX_ANSWER_BYTES;
use base::error::{Error, Result};
use base::ids::Id;
use base::{json, tokens};
use chat::tools::rows::load_agent_tools;
use chat::tools::turn_tools::push_new;
use chat::turn::window::TurnWindow;
use context::compaction::fixed::tools_tokens;
use context::tools::load_tools;
use context::working_context::build::ContextWindow;
use context::working_context::fitting::build_fitting;
use conversation::log::tip::Leaf;
use memory::BlockScope;
use memory::frozen::{find_frozen, find_reminder};
use memory::prompt::{PromptFormat, render};
use memory::view::read_view;
use models::call::choose_model;
use models::choice::Provider;
use models::{ModelRequest, encode_input, encode_request};
use store::config::{Config, load_config};
use store::model_settings::PromptRefresh;

/// `leaf`: where the turn would begin. `format`: by default, that of the agent's own model.
pub async fn render_next_request(
    agent: &Agent<'_>,
    session_id: &Id,
    leaf: Option<Leaf>,
    format: Option<Provider>,
) -> Result<Reply> {
    permit(agent.caller, ListTools::RULE, None)?;
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let scope = BlockScope::get(agent.db, Some(session_id))?;
    let prompt = next_prompt(agent, &config, scope).await?;
    let reminder = find_reminder(&agent.memory(), scope).await?;
    let choice = choose_model(agent.outbound, config.model.as_ref().map(Id::as_str))?;
    let mut tools = load_tools(&toolbox(agent, &config, Some(session_id)))?;
    for tool in load_agent_tools(agent.db, &agent.deployed.tools)?.tools {
        push_new(&mut tools, tool.definition);
    }
    let mut system_instructions: Vec<String> = Some(prompt)
        .filter(|prompt| !prompt.is_empty())
        .into_iter()
        .collect();
    system_instructions.extend(config.system_instructions.0.iter().cloned());
    let window = TurnWindow::load(agent.db, agent.host, session_id, &config, &choice)?;
    let reminded = reminder.as_deref().map_or(0, tokens::estimate);
    let mut budget = window.budget(agent.db, session_id, &tools, reminded)?;
    budget.bytes = MAX_ANSWER_BYTES;
    let context_window = ContextWindow {
        leaf_seq: leaf.map(|leaf| leaf.seq),
        limit: usize::MAX,
        system_instructions,
        added: Vec::new(),
        keep_media: usize::try_from(config.keep_media.0).unwrap_or(0),
    };
    let mut context = build_fitting(agent.db, session_id, context_window, &budget)?.context;
    context.return_provider_data(&choice.name.to_string(), window.tokens >> 2);
    let request = ModelRequest {
        system: &context.system_instructions,
        messages: &context.messages,
        earlier_calls: &[],
        tools: &tools,
        reminder: reminder.as_deref(),
        max_output_tokens: window.answer_tokens,
        temperature: config.temperature.map(|temperature| temperature.0),
        reasoning_effort: config.reasoning_effort,
        caller: None,
    };
    let body = match (format, choice.name.served()) {
        (Some(format), served) if served.is_none_or(|(own, _)| own != format) => {
            encode_input(format, &request)
        }
        _ => encode_request(&choice.name, &request, true),
    };
    let model_input = json::decode(&body).map_err(|error| Error::storage(error.to_string()))?;
    let others = tools_tokens(&tools) + reminded;
    context.tokens_estimate = window.calibration.correct(context.tokens_estimate + others);
    context.model_input = Some(model_input);
    context.reminder = reminder;
    context.tools = Some(tools);
    Reply::json(&context)
}

/// The prompt of the next turn: the frozen one, unless the turn renders it again.
async fn next_prompt(agent: &Agent<'_>, config: &Config, scope: BlockScope<'_>) -> Result<String> {
    let memory = agent.memory();
    let frozen = match config.refresh_prompt {
        PromptRefresh::Turn => None,
        _ => find_frozen(agent.db, scope)?,
    };
    Ok(match frozen {
        Some(frozen) => frozen.prompt,
        None => render(&read_view(&memory, scope).await?, PromptFormat::Text),
    })
}
