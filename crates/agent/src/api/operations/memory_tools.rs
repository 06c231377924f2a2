//! Operations on the tools by which a model uses its memory.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs};
use crate::api::limits::body_with_text;
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::base::json::RawValue;
#[cfg(test)]
use crate::context::tools::ToolOutcome;
use crate::context::tools::{Toolbox, load_tools, run};
use crate::memory::BlockScope;
use crate::memory::budget::MAX_CONTENT_BYTES;
use crate::models::ToolDefinition;
use crate::store::config::{Config, load_config};

/// Gives the tools that fit the blocks, in the form that models take.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTools {
    /// The session whose blocks the tools use, besides the agent's.
    session_id: Option<Id>,
}

#[derive(Serialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "ToolList", deny_unknown_fields)
)]
pub struct Tools {
    tools: Vec<ToolDefinition>,
}

/// The memory that the tools of a session's model work with, for this caller.
pub fn toolbox<'a>(
    agent: &Agent<'a>,
    config: &'a Config,
    session_id: Option<&'a Id>,
) -> Toolbox<'a> {
    Toolbox {
        memory: agent.memory(),
        config,
        session_id,
        turn_id: None,
        event_id: None,
        tells_nobody: false,
        only_session: agent.caller.only_session(),
        writes_agent: agent.caller.reach().writes_agent(),
    }
}

impl Operation for GetTools {
    const NAME: &'static str = "getTools";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
    type Output = Tools;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for GetTools {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        BlockScope::get(agent.db, self.session_id.as_ref())?;
        let config = load_config(agent.db, &agent.deployed.memory.config)?;
        let tools = load_tools(&toolbox(agent, &config, self.session_id.as_ref()))?;
        Reply::json(&Tools { tools })
    }
}

/// Runs a tool on behalf of a model.
///
/// A mistake of the model comes back as `output` with `isError`, for the model to read.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallTool {
    /// The session of the call. The tool uses its blocks and its context, besides the
    /// agent's blocks.
    session_id: Option<Id>,
    name: String,
    /// The arguments object, as the model sent it.
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    arguments: Option<Box<RawValue>>,
}

impl Operation for CallTool {
    const NAME: &'static str = "callTool";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
    #[cfg(test)]
    type Output = ToolOutcome;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for CallTool {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        BlockScope::get(agent.db, self.session_id.as_ref())?;
        let config = load_config(agent.db, &agent.deployed.memory.config)?;
        let toolbox = toolbox(agent, &config, self.session_id.as_ref());
        let arguments = self
            .arguments
            .as_ref()
            .map_or("", |arguments| arguments.get());
        let outcome = run(&toolbox, &self.name, arguments).await?;
        // What `forget` has left. If the answer fails, a later one takes it along.
        let reply = Reply::json(&outcome)?;
        Ok(reply.purged(agent.turns.pages.take_left()))
    }
}
