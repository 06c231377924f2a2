//! Turns whose models a Worker may wait for instead of the object.

use crate::run::agent::Agent;
use crate::turn::Turn;
use base::error::Result;
use base::ids::Id;
use models::call::choose_model;
use models::choice::Provider;
use store::config::load_config;

/// Whether a Worker can wait for the turn's model. A class's own model runs in the object, and the
/// demo answers at once.
pub fn may_wait_elsewhere(agent: &Agent<'_>, turn: &Turn) -> Result<bool> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let own = config.model.as_ref().map(Id::as_str);
    let choice = choose_model(agent.outbound, turn.model.as_deref().or(own))?;
    Ok(match choice.name.served() {
        Some((Provider::Own, _)) | None => false,
        Some((Provider::OpenAi | Provider::Anthropic | Provider::WorkersAi, _)) => true,
    })
}
