//! `eraseAgents`: deletes a person's agents and the backends that they share, and returns
//! one receipt.
//!
//! Invariant: a backend is deleted after the last agent that uses it, since a remaining
//! agent would create it again.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::directory::{MAX_AGENTS, ask, check_prefix};
use crate::operation::{Agent, Operation, Reply, RunWaiting};
use crate::operations::agent::{Destroy, destroy};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::json::{self, json, optional_list};
use directory::list::list_agents;
use lifecycle::receipt::{ErasedAgentSet, Issuer, Receipt};

/// The maximum number of additional backends in one request.
const MAX_BACKENDS: usize = 8;

/// Destroys the agents whose names start with the prefix, with all their data, at most 32
/// in one request. If the prefix ends with a colon, the agent of the name before the colon
/// is destroyed last: it stores what these agents share. `homes` lists others.
///
/// Each agent is destroyed separately. If some of them fail, or if more are left, repeat
/// the request with the answer's `receipt`: the next receipt includes its counts. Texts in
/// a bucket or behind a service are not deleted.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EraseAgents {
    /// The prefix of the agents' names, for example `user:42:`.
    prefix: String,
    /// The prefix again, as a confirmation.
    confirm: String,
    /// Further agents to destroy last, which store shared memory of these.
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_BACKENDS>")]
    #[schemars(length(max = MAX_BACKENDS))]
    homes: Option<Vec<String>>,
    /// The receipt of the previous request, if this one continues it.
    receipt: Option<Receipt>,
}

/// The result of `eraseAgents`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErasedAgents {
    /// The destroyed agents, each with its receipt.
    agents: Vec<Value>,
    /// The agents that still exist because they didn't respond. Repeat the request.
    failed: Vec<String>,
    /// More agents are left. Repeat the request.
    more: bool,
    /// Other agents that stored blocks of the destroyed ones, and that still exist. To
    /// destroy them, too, list them in `homes`.
    homes_left: Vec<String>,
    /// One receipt for all of them, and for those of the requests before.
    receipt: Receipt,
}

impl Operation for EraseAgents {
    const NAME: &'static str = "eraseAgents";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = ErasedAgents;
}

/// The state of one request.
struct AgentErasure<'a> {
    agent: &'a Agent<'a>,
    /// The counts of what was destroyed in this request and in the earlier ones.
    receipt: Receipt,
    agents: Vec<Value>,
    failed: Vec<String>,
    homes_left: Vec<String>,
    /// Whether the agent that runs this request is among those to destroy.
    is_own: bool,
}

impl RunWaiting for EraseAgents {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        check_prefix(&self.prefix)?;
        if self.confirm != self.prefix {
            return Err(Error::invalid(
                "confirm",
                "`confirm` must be exactly the prefix. Nothing was destroyed.",
            ));
        }
        let receipt = begin_receipt(agent, &self.prefix, self.receipt)?;
        let page = list_agents(agent.outbound, &self.prefix, "", MAX_AGENTS).await?;
        let more = page.cursor.is_some();
        let mut erasure = AgentErasure {
            agent,
            receipt,
            agents: Vec::new(),
            failed: Vec::new(),
            homes_left: Vec::new(),
            is_own: false,
        };
        for listed in page.agents {
            erasure.destroy(listed.name, false).await;
        }
        if !more && erasure.failed.is_empty() {
            let named = self.homes.unwrap_or_default();
            let shared = self.prefix.strip_suffix(':').map(str::to_owned);
            for home in shared.into_iter().chain(named) {
                if find_agent(agent, &home).await? {
                    erasure.destroy(home, true).await;
                }
            }
        }
        erasure.end(more).await
    }
}

impl AgentErasure<'_> {
    async fn destroy(&mut self, name: String, stores_shared: bool) {
        // The agent that runs this request is destroyed last: it can do nothing afterward.
        if name == self.agent.name {
            self.is_own = true;
            return;
        }
        let body = json::text(&json!({"confirm": name, "purge": true}));
        match ask(self.agent, &name, Destroy::NAME, body).await {
            Ok(destroyed) => self.note(name, destroyed, stores_shared),
            Err(_) => self.failed.push(name),
        }
    }

    fn note(&mut self, name: String, destroyed: Value, stores_shared: bool) {
        let mut fields = destroyed.as_object().cloned().unwrap_or_default();
        let homes = fields.remove("homes").unwrap_or_default();
        let homes = homes.as_array().into_iter().flatten();
        for home in homes.filter_map(Value::as_str) {
            if !self.homes_left.iter().any(|left| left == home) {
                self.homes_left.push(home.to_owned());
            }
        }
        if let Ok(receipt) = json::from_value::<Receipt>(&Value::Object(fields.clone())) {
            self.receipt.erased.join(&receipt.erased);
        }
        if let Some(agents) = &mut self.receipt.agents {
            agents.count += 1;
            if stores_shared {
                agents.homes.push(name.clone());
            }
        }
        fields.insert("agent".to_owned(), name.into());
        self.agents.push(fields.into());
    }

    async fn end(mut self, more: bool) -> Result<Reply> {
        let mut empties_storage = false;
        if self.is_own {
            // The receipts of the other agents are not lost if this step fails.
            match destroy(self.agent, Some(EraseAgents::NAME)).await {
                Ok(destroyed) => {
                    let receipt = json::encode(&destroyed)?;
                    let receipt = json::decode_tree(&receipt);
                    let receipt = receipt.map_err(|_| Error::storage("a receipt is not JSON"))?;
                    let name = self.agent.name.to_owned();
                    let stores_shared = self
                        .receipt
                        .agents
                        .as_ref()
                        .is_some_and(|agents| !name.starts_with(&agents.prefix));
                    self.note(name, receipt, stores_shared);
                    empties_storage = true;
                }
                Err(error) if self.agents.is_empty() => return Err(error),
                Err(_) => self.failed.push(self.agent.name.to_owned()),
            }
        }
        let was_erased = |name: &String| {
            let agents = self
                .agents
                .iter()
                .filter_map(|one| one.get("agent")?.as_str());
            agents.into_iter().any(|agent| agent == name)
        };
        let mut homes_left = std::mem::take(&mut self.homes_left);
        homes_left.retain(|home| !was_erased(home) && !self.failed.contains(home));
        let issuer = Issuer {
            agent: self.agent.name,
            host: self.agent.host,
            secret: self.agent.policy.secret(),
        };
        let Receipt { erased, agents, .. } = self.receipt;
        let receipt = issuer.issue_for(EraseAgents::NAME, erased, None, agents)?;
        Ok(Reply {
            empties_storage,
            ..Reply::json(&ErasedAgents {
                agents: self.agents,
                failed: self.failed,
                more,
                homes_left,
                receipt,
            })?
        })
    }
}

/// The receipt that this request continues.
fn begin_receipt(agent: &Agent<'_>, prefix: &str, given: Option<Receipt>) -> Result<Receipt> {
    let Some(given) = given else {
        let names = ErasedAgentSet {
            prefix: prefix.to_owned(),
            ..ErasedAgentSet::default()
        };
        let issuer = Issuer {
            agent: agent.name,
            host: agent.host,
            secret: None,
        };
        return issuer.issue_for(EraseAgents::NAME, Default::default(), None, Some(names));
    };
    let mut secrets = agent.policy.secrets();
    let is_ours = match agent.policy.secret() {
        Some(_) => secrets.any(|secret| given.is_signed_by(secret)),
        None => true,
    };
    let is_of_prefix = given
        .agents
        .as_ref()
        .is_some_and(|agents| agents.prefix == prefix);
    if is_ours && is_of_prefix && given.is_whole()? {
        Ok(given)
    } else {
        Err(Error::invalid(
            "receipt",
            "`receipt` must be the receipt of the previous request for the same prefix, unchanged. \
         Nothing was destroyed.",
        ))
    }
}

/// Whether the directory contains an agent of exactly this name.
async fn find_agent(agent: &Agent<'_>, name: &str) -> Result<bool> {
    if name.is_empty() {
        return Ok(false);
    }
    let page = list_agents(agent.outbound, name, "", 1).await?;
    Ok(page.agents.iter().any(|found| found.name == name))
}
