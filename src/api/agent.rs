//! Operations on the agent as a whole.

use serde::{Deserialize, Serialize};

use super::is_operation;
use super::operation::{Agent, Operation, Reply};
use crate::access::{Claims, MAX_TOKEN_SECONDS, Needs, mint};
use crate::config::{Config, change_config, load_config};
use crate::error::{Code, Error, Result};
use crate::ids::Id;
use crate::json::{Limit, nullable};
use crate::models::choice::ModelName;
use crate::schema;

/// Bytes of all system instructions together: they go with every model call.
const MAX_INSTRUCTIONS_BYTES: usize = 256 << 10;

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
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
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
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Vec<Id>>"))]
    reserved_metadata_keys: Option<Option<Vec<Id>>>,
}

impl Operation for ConfigureAgent {
    const NAME: &'static str = "configureAgent";
    const NEEDS: Needs = Needs::Secret;
    #[cfg(test)]
    type Output = Config;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let instructions = self.system_instructions.iter().flatten().flatten();
        let bytes: usize = instructions.map(String::len).sum();
        if bytes > MAX_INSTRUCTIONS_BYTES {
            return Err(Error::payload_too_large(
                "All of `systemInstructions`",
                MAX_INSTRUCTIONS_BYTES,
                bytes,
            )
            .with("field", "systemInstructions"));
        }
        if self
            .reserved_metadata_keys
            .iter()
            .flatten()
            .flatten()
            .count()
            > MAX_RESERVED_KEYS
        {
            return Err(Error::invalid(
                "reservedMetadataKeys",
                format!("`reservedMetadataKeys` must hold at most {MAX_RESERVED_KEYS} keys."),
            ));
        }
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
    #[cfg(test)]
    type Output = Config;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        Reply::json(&load_config(agent.db)?)
    }
}

/// Mints a token that a browser can hold: for this agent, for as long as
/// `expiresIn` says, and no wider than its session and operations.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MintToken {
    /// The only session it shows. Left out: all of the agent's.
    session_id: Option<Id>,
    /// The only operations it runs. Left out: all that don't need the secret.
    operations: Option<Vec<String>>,
    /// Seconds.
    expires_in: Limit<3600, MAX_TOKEN_SECONDS>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Minted {
    token: String,
    /// Milliseconds since the epoch.
    expires_at: i64,
}

impl Operation for MintToken {
    const NAME: &'static str = "mintToken";
    const NEEDS: Needs = Needs::Secret;
    #[cfg(test)]
    type Output = Minted;

    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let secret = agent.policy.secret.as_deref().ok_or_else(|| {
            Error::new(
                Code::NotConfigured,
                "A token is signed with the secret, and this Worker has none. Set one with `npx wrangler secret put SESSION_AGENT_TOKEN`.",
            )
            .with("binding", "SESSION_AGENT_TOKEN")
        })?;
        for (index, name) in self.operations.iter().flatten().enumerate() {
            if !is_operation(name) {
                let field = format!("operations[{index}]");
                return Err(Error::invalid(
                    &field,
                    format!("`{field}` names no operation."),
                ));
            }
        }
        // Each named once, which bounds the token's length by the table's.
        let operations = self.operations.map(|mut names| {
            names.sort_unstable();
            names.dedup();
            names
        });
        let claims = Claims {
            agent: agent.name.to_owned(),
            session_id: self.session_id,
            operations,
            expires_at: agent.host.now_ms() + self.expires_in.0 * 1000,
        };
        Reply::json(&Minted {
            token: mint(secret, &claims),
            expires_at: claims.expires_at,
        })
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
