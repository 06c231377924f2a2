//! Operations on the working context.

use crate::json_schema::JsonSchema;
use std::collections::HashMap;

use super::memory_prompt::FreezePrompt;
use super::memory_tools::toolbox;
use super::next_request::render_next_request;
use crate::limits::{EVENTS_BODY_BYTES, body_with_text};
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::operations::compaction::Growth;
use access::{Effect, Needs, permit, permit_role};
use base::action::Role;
use base::budget::MAX_ANSWER_BYTES;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, JsonObject, Limit, list, nullable};
use base::tokens;
use context::compaction::fixed::tools_tokens;
use context::tools::{has_search, load_tools};
use context::working_context::budget::{Budget, WindowSteps};
use context::working_context::build::{ContextWindow, WorkingContext, build_working_context};
use context::working_context::fast_path::FastPathContext;
use context::working_context::fitting::{build_fitting, estimates};
use conversation::log::MAX_EVENTS;
use conversation::log::append::AppendOutcome;
use conversation::log::append::{Parent, append_and_schedule_learning};
use conversation::log::event::NewEvent;
use conversation::log::note::Note;
use conversation::log::tip::Leaf;
use conversation::messages::tree::leaf::find_leaf;
use conversation::session::last_turns::load_calibration;
use memory::BlockScope;
use memory::frozen::{find_frozen, find_reminder, freeze};
use memory::prompt::{PromptFormat, render};
use memory::view::read_view;
use models::choice::Provider;
use models::message::ContextMessage;
use models::{ModelRequest, ToolDefinition, encode_input};
use serde::Deserialize;
use store::config::{
    KeepMedia, MAX_INSTRUCTIONS, MAX_INSTRUCTIONS_BYTES, check_instructions, load_config,
};

/// Builds the model input of one turn from the newest events of a branch.
///
/// A tool call without a result gets an error as its result. Older long outputs are
/// shortened, and older files are named instead of sent; the log is unchanged. With
/// `maxTokens`, the context has the newest messages that fit, and a sentence at the end of
/// `systemInstructions` gives the number of hidden messages.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildWorkingContext {
    session_id: Id,
    /// Added after the agent's own instructions.
    #[serde(default, deserialize_with = "list::<_, _, 0, MAX_INSTRUCTIONS>")]
    #[schemars(length(max = MAX_INSTRUCTIONS))]
    system_instructions: Vec<String>,
    /// The maximum number of events in the context.
    #[serde(default)]
    limit: Limit<50, 1000>,
    /// The end of the branch. Default: the session's leaf.
    leaf_id: Option<Id>,
    /// The provider whose format `modelInput` has. If omitted, there is no `modelInput`.
    format: Option<Provider>,
    /// The maximum number of tokens of the whole context, estimated as the session's
    /// provider counts them.
    max_tokens: Option<Count>,
    /// Puts the frozen prompt first, and gives the memory's tools and reminder: in
    /// `modelInput`, or in `tools` and `reminder`. If no prompt is frozen yet, one is frozen now,
    /// provided that the caller has the right to.
    #[serde(default)]
    memory: bool,
    /// The number of newest messages whose files are sent. Older files are only named. If omitted:
    /// the agent's `keepMedia`.
    keep_media: Option<KeepMedia>,
    /// Returns in `modelInput` the request that the session's next turn would send, and in
    /// `tools` all of its tools: memory tools, registered tools and those of MCP servers.
    /// Only `leafId` and `format` have an effect; the default `format` is that of the
    /// agent's own model, with the model's name. What the client adds to its turn is
    /// missing, and nothing is frozen. Requires the rights of `listTools`.
    #[serde(default)]
    as_turn: bool,
}

impl Operation for BuildWorkingContext {
    const NAME: &'static str = "buildWorkingContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_INSTRUCTIONS_BYTES);
    type Output = WorkingContext;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunWaiting for BuildWorkingContext {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let session_id = &self.session_id;
        if self.as_turn {
            let leaf = self.find_leaf(agent.db)?;
            return render_next_request(agent, session_id, leaf, self.format).await;
        }
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let is_bare = self.format.is_none() && !self.memory;
        let newest = if is_bare && self.leaf_id.is_none() {
            FastPathContext::find_newest(agent.db, session_id, limit)?
        } else {
            None
        };
        // A wrong leaf is rejected before blocks are read from their backends.
        let mut leaf = match newest {
            Some(_) => None,
            None => self.find_leaf(agent.db)?,
        };
        check_instructions(&self.system_instructions)?;
        let config = load_config(agent.db, &agent.deployed.memory.config)?;
        let mut system_instructions = Vec::new();
        let mut tools = Vec::new();
        let mut reminder = None;
        if self.memory {
            let prompt = read_prompt(agent, session_id).await?;
            let scope = BlockScope::get(agent.db, Some(session_id))?;
            reminder = find_reminder(&agent.memory(), scope).await?;
            system_instructions.extend(Some(prompt).filter(|prompt| !prompt.is_empty()));
            tools = load_tools(&toolbox(agent, &config, Some(session_id)))?;
            // Reading the blocks takes time, in which the session may have grown.
            leaf = self.find_leaf(agent.db)?;
        }
        let keep_media = self.keep_media.unwrap_or(config.keep_media);
        system_instructions.extend(config.system_instructions.0);
        system_instructions.extend(self.system_instructions);
        let calibration = load_calibration(agent.db, session_id)?;
        let others = tools_tokens(&tools) + reminder.as_deref().map_or(0, tokens::estimate);
        let budget = self.max_tokens.map(|tokens| Budget {
            tokens: tokens.0,
            calibration,
            tools: others,
            bytes: MAX_ANSWER_BYTES,
            events: limit,
            steps: WindowSteps::Round,
            field: "maxTokens",
            has_search: has_search(&tools),
        });
        let plain = match (newest, &leaf) {
            (None, Some(leaf)) if is_bare && self.leaf_id.is_some() => {
                FastPathContext::find(agent.db, session_id, leaf, limit)?
            }
            (newest, _) => newest,
        };
        if let Some(plain) = plain {
            if budget
                .as_ref()
                .is_none_or(|budget| plain.fits(&system_instructions, budget))
            {
                let tokens = calibration.correct(plain.tokens + estimates(&system_instructions));
                return plain
                    .into_json(&system_instructions, tokens)
                    .map(Reply::text);
            }
            leaf = find_leaf(agent.db, session_id, "leafId", self.leaf_id.as_ref())?;
        }
        let window = ContextWindow {
            leaf_seq: leaf.map(|leaf| leaf.seq),
            limit,
            system_instructions,
            added: Vec::new(),
            keep_media: usize::try_from(keep_media.0).unwrap_or(0),
        };
        let mut context = match &budget {
            None => build_working_context(agent.db, session_id, window)?,
            Some(budget) => build_fitting(agent.db, session_id, window, budget)?.context,
        };
        context.tokens_estimate = calibration.correct(context.tokens_estimate + others);
        context.reminder = reminder;
        match self.format {
            Some(provider) => {
                context.model_input = Some(model_input(provider, &context, &tools)?);
            }
            None => context.tools = self.memory.then_some(tools),
        }
        Reply::json(&context)
    }
}

impl BuildWorkingContext {
    fn find_leaf(&self, db: &dyn Database) -> Result<Option<Leaf>> {
        find_leaf(db, &self.session_id, "leafId", self.leaf_id.as_ref())
    }
}

/// The frozen prompt. If there is none, and the caller may not freeze one, the current prompt.
async fn read_prompt(agent: &Agent<'_>, session_id: &Id) -> Result<String> {
    let scope = BlockScope::get(agent.db, Some(session_id))?;
    let memory = agent.memory();
    if permit(agent.caller, FreezePrompt::RULE, Some(session_id)).is_ok() {
        return Ok(freeze(&memory, scope).await?.prompt);
    }
    Ok(match find_frozen(agent.db, scope)? {
        Some(frozen) => frozen.prompt,
        None => render(&read_view(&memory, scope).await?, PromptFormat::Text),
    })
}

fn model_input(
    provider: Provider,
    context: &WorkingContext,
    tools: &[ToolDefinition],
) -> Result<JsonObject> {
    let request = ModelRequest {
        system: &context.system_instructions,
        messages: &context.messages,
        tools,
        reminder: context.reminder.as_deref(),
        ..ModelRequest::default()
    };
    json::decode(&encode_input(provider, &request))
        .map_err(|error| Error::storage(error.to_string()))
}

/// Appends the new messages of a turn's context: all of them or none.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PersistWorkingContext {
    session_id: Id,
    /// The new messages only.
    #[serde(deserialize_with = "list::<_, _, 1, MAX_EVENTS>")]
    #[schemars(length(min = 1, max = MAX_EVENTS))]
    messages: Vec<ContextMessage>,
    /// The `leafId` of the context; at another leaf the call fails with `leaf_moved`.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    expected_leaf_id: Option<Option<Id>>,
}

impl Operation for PersistWorkingContext {
    const NAME: &'static str = "persistWorkingContext";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = AppendOutcome;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for PersistWorkingContext {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        for (index, message) in self.messages.iter().enumerate() {
            let is_users = message.role == Role::User;
            permit_role(agent.caller, is_users, &format!("messages[{index}].role"))?;
        }
        // An id may name several calls: a result belongs to the newest such call above it.
        let mut called: HashMap<String, Id> = HashMap::new();
        let authority = agent.caller.authority();
        let events = self
            .messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| {
                let calls = message.calls().iter();
                called.extend(calls.map(|call| (call.id.as_str().to_owned(), call.name.clone())));
                let event = message.into_event(&format!("messages[{index}]"), &|id| {
                    called.get(id.as_str()).cloned()
                })?;
                Ok(NewEvent {
                    note: Note::of_caller(&authority),
                    ..event
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let growth = Growth::of(agent);
        let outcome = append_and_schedule_learning(
            agent.db,
            agent.host,
            &self.session_id,
            &events,
            (&Parent::Leaf, self.expected_leaf_id.as_ref()),
            &|stored| growth.find_due(stored),
        )?;
        let reply = Reply::json(&outcome)?;
        Ok(growth.mark(reply, &self.session_id, &outcome.follow_up))
    }
}
