//! Operations on the agent as a whole.

use serde::{Deserialize, Serialize};

use crate::access::{Caller, Effect, Needs};
use crate::api::limits::body_with_text;
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::base::error::{Error, Result};
use crate::chat::run::callbacks::{check_callback, check_shape};
use crate::models::choice::ModelName;
#[cfg(test)]
use crate::store::config::ShownConfig;
use crate::store::config::{
    ConfigureAgent, MAX_INSTRUCTIONS_BYTES, change_config, check_instructions, show_config,
};
use crate::store::schema;

impl Operation for ConfigureAgent {
    const NAME: &'static str = "configureAgent";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_INSTRUCTIONS_BYTES);
    #[cfg(test)]
    type Output = ShownConfig;
}

impl RunAtOnce for ConfigureAgent {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_change(&self)?;
        if let Some(Some(callback)) = self.on_turn_end.given() {
            check_callback(agent.outbound, callback)?;
        }
        let has_new_rules = self.retention.given().is_some();
        let shown = change_config(agent.db, &agent.deployed.memory.config, self)?;
        agent.keep_soon(has_new_rules);
        Reply::json(&shown)
    }
}

/// Checks rules that the settings' types can't check by themselves. The deployed defaults
/// come by here, too.
pub fn check_change(change: &ConfigureAgent) -> Result<()> {
    check_instructions(change.system_instructions.given().into_iter().flatten())?;
    if let Some(Some(model)) = change.model.given() {
        ModelName::parse("model", model.as_str())?;
    }
    if let Some(Some(callback)) = change.on_turn_end.given() {
        check_shape(callback)?;
    }
    if let Some(Some(model)) = change.summary_model.given() {
        ModelName::parse("summaryModel", model.as_str())?;
    }
    if let Some(Some(prices)) = change.prices.given() {
        prices.check()?;
    }
    Ok(())
}

/// Shows the configuration of the whole agent, and where each value comes from.
///
/// Without the secret, the address of `onTurnEnd` is shown by its host.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetConfig {}

impl Operation for GetConfig {
    const NAME: &'static str = "getConfig";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
    type Output = ShownConfig;
}

impl RunAtOnce for GetConfig {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let mut shown = show_config(agent.db, &agent.deployed.memory.config)?;
        if *agent.caller != Caller::Owner {
            shown.conceal();
        }
        Reply::json(&shown)
    }
}

/// Drops every table and empties the storage. The next call starts with an empty
/// agent.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Destroy {
    /// The agent's name, which guards against mistakes.
    confirm: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
pub struct Destroyed {
    destroyed: bool,
}

impl Operation for Destroy {
    const NAME: &'static str = "destroy";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(test)]
    type Output = Destroyed;
}

impl RunAtOnce for Destroy {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.confirm != agent.name {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be this agent's name, to the letter. Nothing was destroyed.",
            ));
        }
        schema::drop_all(agent.db)?;
        agent.turns.cancel_all();
        Ok(Reply {
            empties_storage: true,
            grown: None,
            ..Reply::json(&Destroyed { destroyed: true })?
        })
    }
}
