//! Mints tokens, which a browser uses instead of the secret.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce, names_one};
use access::{
    AccessRule, Allow, Claims, Effect, MAX_TOKEN_BYTES, MAX_TOKEN_SECONDS, Needs, TokenScope,
};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{Limit, given, list};
use base::settings::Setting;
use models::choice::ModelName;
use store::config::load_config;
use store::limits::{GivenLimits, PrincipalLimits};
use store::memory_use::MemoryUse;

/// The most operation names in one request: more than there are operations.
const MAX_OPERATIONS: usize = 200;

/// Mints a token for a browser: for this agent, valid for `expiresIn` seconds, and limited
/// to its session and its operations.
///
/// The operations of `preset` and `operations` are combined. Without either, the token runs every
/// operation except
/// those that need the secret or must be named. In any case, the holder may write only user
/// messages, and may choose neither the model nor the system prompt, unless `allow` permits
/// it. An omitted field allows more than a present one, so no field may be `null`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MintToken {
    /// The only session that the token may use. Default: all sessions. `chat` needs one.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Id", skip_serializing_if = "Option::is_none")]
    session_id: Option<Id>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Preset")]
    preset: Option<Preset>,
    /// Operations that the token may run in addition to its preset's; `chat` allows chat
    /// turns.
    #[serde(default, deserialize_with = "given_list::<_, MAX_OPERATIONS>")]
    #[schemars(with = "Vec<String>", length(max = MAX_OPERATIONS), skip_serializing_if = "Option::is_none")]
    operations: Option<Vec<String>>,
    #[serde(default)]
    allow: Allow,
    /// The limits for the turns of the token's holder. The agent's own `limits` apply, too, so a
    /// token's can only be tighter.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "store::limits::Limits")]
    limits: Option<GivenLimits>,
    /// Your name for the holder of the token, such as `user-42`: the tokens of one holder
    /// share the counts of `limits`. If omitted, the token is counted separately.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Id", skip_serializing_if = "Option::is_none")]
    holder: Option<Id>,
    /// What requests over the base URL let the model do with the agent's memory, unless their
    /// header `x-session-memory` asks for less. A request that asks for more is refused.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "MemoryUse", skip_serializing_if = "Option::is_none")]
    session_memory: Option<MemoryUse>,
    /// The token's lifetime in seconds.
    expires_in: Limit<3600, MAX_TOKEN_SECONDS>,
}

/// A list of names that may be omitted, but not `null`.
fn given_list<'de, D: Deserializer<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    list::<_, _, 0, MAX>(deserializer).map(Some)
}

/// A set of operations under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// The operations that a page for one conversation needs.
    Chat,
    /// All operations that only read and don't require the secret.
    Read,
    /// Only chat turns: for a client of a provider's API that uses the base URL.
    Model,
}

/// Beginning, resuming and canceling a turn, and reading the conversation. The preset has no
/// operation on prompts or memory, and none that deletes messages.
const CHAT_PRESET: &[&str] = &[
    chat::run::agent::CHAT,
    "runTurn",
    "cancelTurn",
    "getSession",
    "loadEvents",
    "getMessage",
    "getHistory",
    "getBranches",
    "getLatestLeaf",
    "getPathLength",
    "getChanges",
    "search",
];

impl Preset {
    /// The operations of the preset.
    pub fn operations(self, rules: &[AccessRule]) -> Vec<&'static str> {
        match self {
            Preset::Chat => CHAT_PRESET.to_vec(),
            Preset::Model => vec![chat::run::agent::CHAT],
            Preset::Read => rules
                .iter()
                .filter(|rule| rule.effect == Effect::Nothing && rule.needs != Needs::Secret)
                .map(|rule| rule.operation)
                .collect(),
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MintedToken {
    token: String,
    /// Milliseconds since the epoch.
    expires_at: i64,
}

impl Operation for MintToken {
    const NAME: &'static str = "mintToken";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = MintedToken;
}

impl RunAtOnce for MintToken {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let secret = agent.policy.secret().ok_or_else(|| {
            Error::new(
                Code::NotConfigured,
                "Tokens are signed with the secret, and this Worker has none. Generate one with \
                 `openssl rand -hex 32`, store it, and set it with `npx wrangler secret put \
                 SESSION_AGENT_TOKEN`.",
            )
            .with("binding", Setting::SessionAgentToken.name())
        })?;
        let claims = Claims {
            agent: agent.name.to_owned(),
            scope: self.scope(agent)?,
        };
        let token = secret.mint(&claims);
        if token.len() > MAX_TOKEN_BYTES {
            let actual = token.len();
            return Err(
                Error::payload_too_large("The token", MAX_TOKEN_BYTES, actual).with_field("allow"),
            );
        }
        Reply::json(&MintedToken {
            token,
            expires_at: claims.scope.expires_at,
        })
    }
}

impl MintToken {
    /// The rights that a class gives one request, instead of a token. The next request is granted
    /// its own rights, so limits without a `holder` would count each request separately.
    pub fn grant(self, agent: &Agent<'_>) -> Result<TokenScope> {
        if self.limits.is_some() && self.holder.is_none() {
            Err(Error::invalid(
                "holder",
                "`holder` is missing: the `limits` of a grant count the turns of a holder, for \
             example the user's id.",
            ))
        } else {
            self.scope(agent)
        }
    }

    /// The rights that the token gives.
    pub fn scope(self, agent: &Agent<'_>) -> Result<TokenScope> {
        if self.preset == Some(Preset::Chat) && self.session_id.is_none() {
            return Err(Error::invalid(
                "sessionId",
                "`sessionId` is missing: the preset `chat` is for one session.",
            ));
        }
        for (index, name) in self.operations.iter().flatten().enumerate() {
            if !names_one(agent.operations, name) {
                let field = format!("operations[{index}]");
                return Err(Error::invalid(
                    &field,
                    format!("`{field}` is not an operation."),
                ));
            }
        }
        check_allow(&self.allow)?;
        let limits = self.principal_limits(agent)?;
        Ok(TokenScope {
            session_id: self.session_id,
            operations: named(agent.operations, self.preset, self.operations),
            allow: self.allow,
            limits,
            session_memory: self.session_memory,
            expires_at: agent.host.now_ms() + self.expires_in.0 * 1000,
        })
    }

    /// The token's limits, and the name under which they are counted.
    fn principal_limits(&self, agent: &Agent<'_>) -> Result<Option<PrincipalLimits>> {
        let Some(GivenLimits(most)) = &self.limits else {
            return match self.holder {
                None => Ok(None),
                Some(_) => Err(Error::invalid(
                    "holder",
                    "`holder` requires `limits`: set `limits`, or omit `holder`.",
                )),
            };
        };
        let config = load_config(agent.db, &agent.deployed.memory.config)?;
        most.check_countable(config.prices.as_ref(), "limits.costPerDay")?;
        let holder = match &self.holder {
            Some(name) => format!("holder {name}"),
            None => format!("token {}", Id::mint_token(agent.host)),
        };
        Ok(Some(PrincipalLimits {
            holder,
            most: most.clone(),
        }))
    }
}

/// The operations that a token names: each once, so the number of operations limits the token's
/// length.
fn named(
    rules: &[AccessRule],
    preset: Option<Preset>,
    operations: Option<Vec<String>>,
) -> Option<Vec<String>> {
    if preset.is_none() && operations.is_none() {
        return None;
    }
    let granted = preset
        .map(|preset| preset.operations(rules))
        .unwrap_or_default();
    let mut names = operations.unwrap_or_default();
    names.extend(granted.into_iter().map(str::to_owned));
    names.sort();
    names.dedup();
    Some(names)
}

fn check_allow(allow: &Allow) -> Result<()> {
    for (index, model) in allow.models.iter().enumerate() {
        ModelName::parse(&format!("allow.models[{index}]"), model.as_str())?;
    }
    Ok(())
}
