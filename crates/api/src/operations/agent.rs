//! Operations on the agent as a whole.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::body_with_text;
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::operations::receipts::issue;
use access::{Caller, Effect, Needs};
use base::background::CHECK_AFTER_MS;
use base::error::{Code, Error, Result};
use chat::run::callbacks::{MEMORY_CHANGE, TURN_END, check_shapes, check_targets, no_target};
use directory::membership::{self, Member};
use lifecycle::receipt::Receipt;
use lifecycle::tables::count_all;
use memory::BlockScope;
use memory::definitions::load_definitions;
use memory::label::Label;
use memory::proposals::apply::entries_of;
use memory::source::BlockBackend;
use models::choice::ModelName;
use store::callbacks::CallbackTarget;
use store::config::CurrentConfig;
use store::config::{
    ConfigLayer, ConfigureAgent, MAX_INSTRUCTIONS_BYTES, SettingChange, change_config,
    check_instructions, show_config,
};
use store::learn_settings::{LearnSettings, MAX_LEARN_INSTRUCTIONS_BYTES};
use store::schema;

impl Operation for ConfigureAgent {
    const NAME: &'static str = "configureAgent";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_INSTRUCTIONS_BYTES);
    type Output = CurrentConfig;
}

impl RunAtOnce for ConfigureAgent {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_change(&self)?;
        check_removals(&self, &agent.deployed.memory.config.defaults)?;
        check_targets(agent.outbound, &self)?;
        check_into(agent, &self)?;
        let has_new_rules = self.retention.given().is_some() || self.backups.given().is_some();
        let config = change_config(agent.db, &agent.deployed.memory.config, self)?;
        agent.schedule_retention(has_new_rules);
        Reply::json(&config)
    }
}

/// Checks rules that the settings' types can't express. Also used for the deployed
/// defaults.
pub fn check_change(change: &ConfigureAgent) -> Result<()> {
    check_instructions(change.system_instructions.given().into_iter().flatten())?;
    if let Some(Some(model)) = change.model.given() {
        ModelName::parse("model", model.as_str())?;
    }
    check_shapes(change)?;
    if let Some(Some(model)) = change.summary_model.given() {
        ModelName::parse("summaryModel", model.as_str())?;
    }
    if let Some(Some(prices)) = change.prices.given() {
        prices.check()?;
    }
    if let Some(Some(learn)) = change.learn.given() {
        check_learn(learn)?;
    }
    Ok(())
}

/// Checks that each `{}` removes a deployed default. If there is no default, the value is
/// incomplete.
pub fn check_removals(change: &ConfigureAgent, deployed: &ConfigLayer) -> Result<()> {
    let removes = |change: &SettingChange<Option<CallbackTarget>>| matches!(change.given(), Some(Some(target)) if !target.is_set());
    let is_deployed = |deployed: &Option<Option<CallbackTarget>>| matches!(deployed, Some(Some(_)));
    if removes(&change.on_turn_end) && !is_deployed(&deployed.on_turn_end) {
        return Err(no_target(TURN_END));
    }
    if removes(&change.on_memory_change) && !is_deployed(&deployed.on_memory_change) {
        return Err(no_target(MEMORY_CHANGE));
    }
    if matches!(change.learn.given(), Some(Some(learn)) if learn.is_off())
        && !matches!(deployed.learn, Some(Some(_)))
    {
        return Err(needs_into());
    }
    if matches!(change.summarize.given(), Some(Some(named)) if named.service.is_none())
        && !matches!(deployed.summarize, Some(Some(_)))
    {
        let message = "`summarize.service` is missing: set it to the name of a service binding.";
        return Err(Error::invalid("summarize.service", message));
    }
    Ok(())
}

fn needs_into() -> Error {
    let message = "`learn.into` is missing: set it to the label of a searchable block. To turn \
                   learning off, set `learn` to `null`, or to `{}` if a default is deployed.";
    Error::invalid("learn.into", message)
}

/// Learned facts are stored in a block of entries of this agent. A block of another kind is
/// refused here, and not only when there is something to learn.
fn check_into(agent: &Agent<'_>, change: &ConfigureAgent) -> Result<()> {
    let Some(Some(into)) = change
        .learn
        .given()
        .map(|learn| learn.as_ref()?.into.as_ref())
    else {
        return Ok(());
    };
    match entries_of(&agent.memory(), BlockScope::Agent, into.as_str()) {
        // The block may be defined later.
        Err(error) if error.code != Code::BlockNotFound => Err(error.with_field("learn.into")),
        _ => Ok(()),
    }
}

fn check_learn(learn: &LearnSettings) -> Result<()> {
    if learn.is_off() {
        return Ok(());
    }
    let Some(into) = &learn.into else {
        return Err(needs_into());
    };
    let labels = [
        ("learn.into", Some(into)),
        ("learn.profile", learn.profile.as_ref()),
    ];
    for (field, label) in labels {
        if let Some(Err(problem)) = label.map(|label| Label::parse(label.as_str())) {
            return Err(Error::invalid(field, format!("`{field}` {problem}.")));
        }
    }
    if let Some(model) = &learn.model {
        ModelName::parse("learn.model", model.as_str())?;
    }
    let bytes = learn.instructions.as_deref().map_or(0, str::len);
    if bytes > MAX_LEARN_INSTRUCTIONS_BYTES {
        let most = MAX_LEARN_INSTRUCTIONS_BYTES;
        let error = Error::payload_too_large("`learn.instructions`", most, bytes);
        return Err(error.with_field("learn.instructions"));
    }
    Ok(())
}

/// Shows the configuration of the whole agent, and where each value comes from.
///
/// Without the secret, the addresses of `onTurnEnd` and `onMemoryChange` are shown by
/// their hosts.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetConfig {}

impl Operation for GetConfig {
    const NAME: &'static str = "getConfig";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    type Output = CurrentConfig;
}

impl RunAtOnce for GetConfig {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let mut config = show_config(agent.db, &agent.deployed.memory.config)?;
        if *agent.caller != Caller::Owner {
            config.redact();
        }
        Reply::json(&config)
    }
}

/// Drops every table and empties the storage. The next call starts with an empty
/// agent.
///
/// An agent in a directory is removed from it first. If the directory doesn't respond,
/// nothing is destroyed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Destroy {
    /// The agent's name, as a confirmation.
    confirm: String,
    /// Also return a receipt, with counts of up to a million of each kind.
    #[serde(default)]
    purge: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Destroyed {
    destroyed: bool,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    /// With `purge`: the other agents that store blocks of this one. They still exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    homes: Vec<String>,
}

impl Operation for Destroy {
    const NAME: &'static str = "destroy";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = Destroyed;
}

impl RunWaiting for Destroy {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.confirm != agent.name {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be exactly this agent's name. Nothing was destroyed.",
            ));
        }
        let receipted = self.purge.then_some(Self::NAME);
        let destroyed = destroy(agent, receipted).await?;
        Ok(Reply {
            empties_storage: true,
            grown: None,
            ..Reply::json(&destroyed)?
        })
    }
}

/// Drops every table. The caller empties the storage. `receipted`: the operation that a
/// receipt names.
pub async fn destroy(agent: &Agent<'_>, receipted: Option<&str>) -> Result<Destroyed> {
    if membership::is_bound(agent.outbound) {
        let member = Member {
            name: agent.name,
            db: agent.db,
            host: agent.host,
            outbound: agent.outbound,
        };
        // If the object is evicted after this line, the alarm registers the agent in the
        // directory again.
        if member.is_known()? {
            agent.background.wake_within(CHECK_AFTER_MS);
        }
        member.leave().await?;
    }
    let homes = match receipted {
        Some(_) => find_backend_agents(agent)?,
        None => Vec::new(),
    };
    let receipt = match receipted {
        Some(operation) => Some(issue(agent, operation, count_all(agent.db)?, None)?),
        None => None,
    };
    schema::drop_all(agent.db)?;
    agent.turns.cancel_all();
    Ok(Destroyed {
        destroyed: true,
        receipt,
        homes,
    })
}

/// The agents in which this agent stores blocks.
fn find_backend_agents(agent: &Agent<'_>) -> Result<Vec<String>> {
    let mut homes = Vec::new();
    for block in load_definitions(&agent.memory(), BlockScope::Agent)? {
        match block.backend() {
            BlockBackend::Agent { name, .. } if !homes.iter().any(|home| home == name) => {
                homes.push(name.to_owned());
            }
            BlockBackend::Agent { .. }
            | BlockBackend::Object
            | BlockBackend::Bucket { .. }
            | BlockBackend::BucketPrefix { .. }
            | BlockBackend::Service { .. }
            | BlockBackend::Unresolved { .. } => {}
        }
    }
    Ok(homes)
}
