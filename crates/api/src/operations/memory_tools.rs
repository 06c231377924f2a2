//! Operations on the tools by which a model uses its memory.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::body_with_text;
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use access::{Effect, Needs};
use base::error::Result;
use base::ids::Id;
use base::json::RawValue;
use context::tools::ToolOutcome;
use context::tools::{Toolbox, load_tools, run};
use memory::budget::MAX_CONTENT_BYTES;
use memory::{BlockScope, Memory};
use models::ToolDefinition;
use store::config::{Config, load_config};

/// Returns the tools for the blocks, in the format of model APIs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetTools {
    /// The session whose blocks the tools use, besides the agent's.
    session_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolList", deny_unknown_fields)]
pub struct Tools {
    tools: Vec<ToolDefinition>,
}

/// The memory for the tools of a session's model, for this caller.
pub fn toolbox<'a>(
    agent: &Agent<'a>,
    config: &'a Config,
    session_id: Option<&'a Id>,
) -> Toolbox<'a> {
    Toolbox {
        memory: Memory {
            asking: session_id,
            ..agent.memory()
        },
        config,
        session_id,
        turn_id: None,
        event_id: None,
        is_silent: false,
        untrusted: None,
        only_session: agent.caller.only_session(),
        writes_agent: agent.caller.memory_scope().writes_agent(),
    }
}

impl Operation for GetTools {
    const NAME: &'static str = "getTools";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
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
/// Mistakes of the model are returned as `output` with `isError`, for the model to read.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallTool {
    /// The session of the call. The tool uses its blocks and its context, besides the
    /// agent's blocks.
    session_id: Option<Id>,
    name: String,
    /// The arguments object, as the model sent it.
    #[schemars(with = "Option<serde_json::Value>")]
    arguments: Option<Box<RawValue>>,
}

impl Operation for CallTool {
    const NAME: &'static str = "callTool";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_CONTENT_BYTES);
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
        // Pages that `forget` left to be cleared. If the answer fails, a later one includes them.
        let reply = Reply::json(&outcome)?;
        Ok(reply.purged(agent.work.pages.take_left()))
    }
}
