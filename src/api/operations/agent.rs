//! Operations on the agent as a whole.

use serde::{Deserialize, Serialize};

use crate::access::{Needs, Touches};
use crate::api::limits::body_with_text;
use crate::api::operation::{Agent, Operation, Reply};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{Limit, nullable, nullable_list};
use crate::models::choice::ModelName;
use crate::store::config::{
    Config, MAX_INSTRUCTIONS, MAX_INSTRUCTIONS_BYTES, change_config, check_instructions,
    load_config,
};
use crate::store::schema;

/// Metadata keys that may be reserved.
const MAX_RESERVED_KEYS: usize = 100;

/// Sets what belongs to the whole agent; what is left out stays, `null` goes
/// back to the default.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigureAgent {
    /// `workers-ai:…`, `openai:…`, `anthropic:…` or `demo`; `null`: the Worker's `MODEL`.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    model: Option<Option<Id>>,
    #[serde(
        default,
        deserialize_with = "nullable_list::<_, _, 0, MAX_INSTRUCTIONS>"
    )]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>", length(max = MAX_INSTRUCTIONS)))]
    system_instructions: Option<Option<Vec<String>>>,
    /// Steps of one turn.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Limit<10, 100>>"))]
    max_steps: Option<Option<Limit<10, 100>>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    session_search: Option<Option<bool>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    vectors: Option<Option<bool>>,
    #[serde(
        default,
        deserialize_with = "nullable_list::<_, _, 0, MAX_RESERVED_KEYS>"
    )]
    #[cfg_attr(test, schemars(with = "Option<Vec<Id>>", length(max = MAX_RESERVED_KEYS)))]
    reserved_metadata_keys: Option<Option<Vec<Id>>>,
}

impl Operation for ConfigureAgent {
    const NAME: &'static str = "configureAgent";
    const NEEDS: Needs = Needs::Secret;
    const TOUCHES: Touches = Touches::Agent;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_INSTRUCTIONS_BYTES);
    #[cfg(test)]
    type Output = Config;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_instructions(self.system_instructions.iter().flatten().flatten())?;
        if let Some(Some(model)) = &self.model {
            ModelName::parse("model", model.as_str())?;
        }
        let config = change_config(agent.db, |config| {
            let default = Config::default();
            let text = |id: Id| id.as_str().to_owned();
            if let Some(model) = self.model {
                config.model = model.map(text);
            }
            if let Some(instructions) = self.system_instructions {
                config.system_instructions = instructions.unwrap_or(default.system_instructions);
            }
            if let Some(max_steps) = self.max_steps {
                config.max_steps = max_steps.map_or(default.max_steps, |steps| steps.0);
            }
            if let Some(session_search) = self.session_search {
                config.session_search = session_search.unwrap_or(default.session_search);
            }
            if let Some(vectors) = self.vectors {
                config.vectors = vectors.unwrap_or(default.vectors);
            }
            if let Some(keys) = self.reserved_metadata_keys {
                config.reserved_metadata_keys = keys.into_iter().flatten().map(text).collect();
            }
        })?;
        Reply::json(&config)
    }
}

/// Shows what belongs to the whole agent.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetConfig {}

impl Operation for GetConfig {
    const NAME: &'static str = "getConfig";
    const NEEDS: Needs = Needs::WholeAgent;
    const TOUCHES: Touches = Touches::Nothing;
    #[cfg(test)]
    type Output = Config;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        Reply::json(&load_config(agent.db)?)
    }
}

/// Drops every table and empties the storage. The object works again, empty, on
/// the next call.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Destroy {
    /// The agent's name, so that this is nobody's slip.
    confirm: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, Deserialize))]
pub struct Destroyed {
    destroyed: bool,
}

impl Operation for Destroy {
    const NAME: &'static str = "destroy";
    const NEEDS: Needs = Needs::Secret;
    const TOUCHES: Touches = Touches::Agent;
    #[cfg(test)]
    type Output = Destroyed;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.confirm != agent.name {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be this agent's name, to the letter. Nothing was destroyed.",
            ));
        }
        schema::drop_all(agent.db)?;
        Ok(Reply {
            empties_storage: true,
            grown: None,
            ..Reply::json(&Destroyed { destroyed: true })?
        })
    }
}
