//! Operations on the working context.

use std::collections::HashMap;

use serde::Deserialize;

use crate::access::{Effect, Needs, permit_voice};
use crate::api::limits::{EVENTS_BODY_BYTES, body_with_text};
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::api::operations::compaction::mark_grown;
use crate::base::action::Role;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{self, JsonObject, Limit, list, nullable};
use crate::context::working_context::build::{
    ContextWindow, WorkingContext, build_working_context,
};
use crate::log::MAX_EVENTS;
#[cfg(test)]
use crate::log::append::AppendOutcome;
use crate::log::append::{Parent, append};
use crate::messages::tree::leaf::resolve_leaf;
use crate::models::choice::Provider;
use crate::models::message::ContextMessage;
use crate::models::{ModelRequest, encode_input};
use crate::store::config::{
    MAX_INSTRUCTIONS, MAX_INSTRUCTIONS_BYTES, check_instructions, load_config,
};
use crate::store::last_turns::load_calibration;

/// Builds what one turn sends to a model from the newest events of a branch.
///
/// A tool call without a result is completed with an error result. Older long outputs
/// are shortened; the log keeps them whole.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildWorkingContext {
    session_id: Id,
    /// Added after the agent's own instructions.
    #[serde(default, deserialize_with = "list::<_, _, 0, MAX_INSTRUCTIONS>")]
    #[cfg_attr(test, schemars(length(max = MAX_INSTRUCTIONS)))]
    system_instructions: Vec<String>,
    /// The most events that the context is built from.
    #[serde(default)]
    limit: Limit<50, 1000>,
    /// The end of the branch. Left out: the session's leaf.
    leaf_id: Option<Id>,
    /// The provider whose format `modelInput` has. Left out: there is no `modelInput`.
    format: Option<Provider>,
}

impl Operation for BuildWorkingContext {
    const NAME: &'static str = "buildWorkingContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_INSTRUCTIONS_BYTES);
    #[cfg(test)]
    type Output = WorkingContext;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for BuildWorkingContext {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf = resolve_leaf(agent.db, &self.session_id, "leafId", self.leaf_id.as_ref())?;
        check_instructions(&self.system_instructions)?;
        let config = load_config(agent.db, &agent.outbound.deployed())?;
        let mut instructions = config.system_instructions.0;
        instructions.extend(self.system_instructions);
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let window = ContextWindow {
            leaf_seq: leaf,
            limit,
            system_instructions: instructions,
            added: Vec::new(),
        };
        let mut context = build_working_context(agent.db, &self.session_id, window)?;
        let calibration = load_calibration(agent.db, &self.session_id)?;
        context.tokens_estimate = calibration.correct(context.tokens_estimate);
        context.model_input = self
            .format
            .map(|provider| model_input(provider, &context))
            .transpose()?;
        Reply::json(&context)
    }
}

fn model_input(provider: Provider, context: &WorkingContext) -> Result<JsonObject> {
    let request = ModelRequest {
        system: &context.system_instructions,
        messages: &context.messages,
        tools: &[],
        ..ModelRequest::default()
    };
    json::decode(&encode_input(provider, &request))
        .map_err(|error| Error::storage(error.to_string()))
}

/// Appends what a turn added to its context: all of it or nothing.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PersistWorkingContext {
    session_id: Id,
    /// The new messages only.
    #[serde(deserialize_with = "list::<_, _, 1, MAX_EVENTS>")]
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_EVENTS)))]
    messages: Vec<ContextMessage>,
    /// The `leafId` of the context; at another leaf the call fails with `leaf_moved`.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    expected_leaf_id: Option<Option<Id>>,
}

impl Operation for PersistWorkingContext {
    const NAME: &'static str = "persistWorkingContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    #[cfg(test)]
    type Output = AppendOutcome;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for PersistWorkingContext {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        for (index, message) in self.messages.iter().enumerate() {
            let is_users = message.role == Role::User;
            permit_voice(agent.caller, is_users, &format!("messages[{index}].role"))?;
        }
        let called: HashMap<String, Id> = self
            .messages
            .iter()
            .flat_map(|message| message.calls())
            .map(|call| (call.id.as_str().to_owned(), call.name.clone()))
            .collect();
        let events = self
            .messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| {
                message.into_event(&format!("messages[{index}]"), &|id| {
                    called.get(id.as_str()).cloned()
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let outcome = append(
            agent.db,
            agent.host,
            &self.session_id,
            &events,
            &Parent::Leaf,
            self.expected_leaf_id.as_ref(),
        )?;
        let reply = Reply::json(&outcome)?;
        Ok(mark_grown(reply, &self.session_id, &outcome.settings))
    }
}
