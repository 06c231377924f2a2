//! Starts the turn of a chat request: checks what the caller may request, and queues the request if
//! another turn runs.

use std::rc::Rc;

use crate::request::ChatRequest;
use crate::request::delivery::Delivery;
use crate::run::agent::{Agent, CHAT_RULE};
use crate::run::queue::enqueue;
use crate::run::request_writer::RequestWriter;
use crate::run::running_turns::AwaitedTurn;
use crate::run::watchers::broadcast_list;
use crate::run::work::TurnWork;
use access::{Caller, needs_allowance, permit};
use base::error::Result;
use base::ids::Id;
use models::ToolDefinition;
use models::choice::ModelName;

pub enum Started {
    Turn(TurnWork),
    /// The message is queued until another turn ends.
    Queued(Rc<AwaitedTurn>),
    /// Tool calls of this message still wait for the client's results.
    LeftToClient {
        message_id: String,
    },
}

/// Writes a request's messages to the log and begins the turn.
pub fn start(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &mut ChatRequest,
    turn_id: &str,
) -> Result<Started> {
    permit(agent.caller, CHAT_RULE, Some(session_id))?;
    start_permitted(agent, session_id, request, turn_id)
}

/// Writes the messages and begins the turn for a caller who is known to be permitted.
pub fn start_permitted(
    agent: &Agent<'_>,
    session_id: &Id,
    request: &mut ChatRequest,
    turn_id: &str,
) -> Result<Started> {
    check_overrides(agent.caller, request)?;
    if let Some(id) = &request.delivery_id {
        request.skips_callbacks |= Delivery::of(agent.policy, agent.name, session_id).issued(id)
            || Delivery::of_memory(agent.policy, agent.name).issued(id);
    }
    let request = &*request;
    if let Some(awaited) = enqueue(agent, session_id, request, turn_id)? {
        return Ok(Started::Queued(awaited));
    }
    let reservation = agent.turns.reserve(request.retained_bytes())?;
    let writer = RequestWriter::of(agent, session_id, agent.caller.principal());
    let started = writer.write(request, turn_id)?;
    // The turn is stored now: nothing below may prevent it from starting.
    let work = started.turn.map(|turn| agent.begin(turn, reservation));
    if started.has_changed {
        broadcast_list(agent, session_id, Some(turn_id));
    }
    Ok(match work {
        Some(work) => Started::Turn(work),
        None => Started::LeftToClient {
            message_id: started.message_id,
        },
    })
}

/// Checks that the caller's token allows the request's own model, system prompt and
/// tools.
fn check_overrides(caller: &Caller, request: &ChatRequest) -> Result<()> {
    if let Some(model) = &request.model {
        ModelName::parse("model", model.as_str())?;
        if !caller.may_choose_model(model.as_str()) {
            return Err(needs_allowance("model", "models"));
        }
    }
    if !request.system_instructions.is_empty() && !caller.may_set_system_instructions() {
        return Err(needs_allowance("systemInstructions", "systemInstructions"));
    }
    check_client_tools(caller, &request.client_tools, request.tools_field)
}

/// Checks that the caller may send tools of its own.
pub fn check_client_tools(caller: &Caller, tools: &[ToolDefinition], field: &str) -> Result<()> {
    if tools.is_empty() || caller.may_bring_client_tools() {
        return Ok(());
    }
    Err(needs_allowance(field, "clientTools"))
}
