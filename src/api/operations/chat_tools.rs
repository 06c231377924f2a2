//! The tools that an agent's models may call in chat turns beside the memory's own.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::access::{Effect, Needs};
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{FromJson, JsonObject, Limit};
use crate::base::outbound::Outbound;
use crate::chat::client_tools::check_name;
use crate::chat::registered::{
    MAX_TIMEOUT_MS, MAX_TOOL_OUTPUT_BYTES, RegisteredTool, ShownTool, ToolAddress, ToolLimits,
    define_tool, load_tools, remove_tool,
};
use crate::chat::tool_headers::ToolHeaders;
use crate::context::tools::is_ours;
use crate::models::ToolDefinition;

/// Limits for a tool's description and schema: every model call sends both.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Registers a tool that this agent's models may call in a chat turn: behind a
/// service binding, or at an address whose origin is in `TOOL_ORIGINS`.
///
/// The tool is called with a POST of `{name, arguments, agent, sessionId}`. The model
/// reads the answer. The header `idempotency-key` names the call.
#[derive(FromJson)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefineTool {
    /// 1 to 64 letters, digits, `_` or `-`.
    name: String,
    description: String,
    /// JSON Schema of an object. Left out: any object.
    parameters: Option<JsonObject>,
    /// The service binding's name. Either this or `url`.
    service: Option<Id>,
    url: Option<String>,
    /// Whether the user must approve each call.
    #[serde(default)]
    needs_approval: bool,
    /// Headers of each call. The value `secret:NAME` or `Bearer secret:NAME` stands for
    /// the Worker's secret of this name. The variable `TOOL_SECRETS` must name the
    /// tool's origin for this secret.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How long a call may take, in milliseconds. Left out: 30 seconds of silence and 5
    /// minutes in all.
    timeout_ms: Option<Limit<30_000, MAX_TIMEOUT_MS>>,
    /// The most bytes of an answer. Left out: 256 KiB.
    max_output_bytes: Option<Limit<262_144, MAX_TOOL_OUTPUT_BYTES>>,
}

impl Operation for DefineTool {
    const NAME: &'static str = "defineTool";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(test)]
    type Output = ShownTool;
}

impl RunAtOnce for DefineTool {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let tool = self.into_tool(agent.outbound)?;
        define_tool(agent.db, agent.host, &agent.outbound.deployed(), &tool)?;
        Reply::json(&tool.show())
    }
}

impl DefineTool {
    /// The tool, checked. The deployed tools come by here, too.
    pub fn into_tool(self, outbound: &dyn Outbound) -> Result<RegisteredTool> {
        check_name("name", &self.name)?;
        if is_ours(&self.name) {
            return Err(Error::invalid(
                "name",
                "`name` is one of the memory's own tools. Choose another.",
            ));
        }
        let too_long = |field: &str, max: usize, actual: usize| {
            Error::payload_too_large(&format!("`{field}`"), max, actual).with("field", field)
        };
        if self.description.len() > MAX_DESCRIPTION_BYTES {
            let actual = self.description.len();
            return Err(too_long("description", MAX_DESCRIPTION_BYTES, actual));
        }
        let parameters = match self.parameters {
            Some(schema) if schema.as_str().len() > MAX_SCHEMA_BYTES => {
                let actual = schema.as_str().len();
                return Err(too_long("parameters", MAX_SCHEMA_BYTES, actual));
            }
            Some(schema) => schema.into_raw(),
            None => RawValue::from_string(r#"{"type":"object"}"#.to_owned())
                .map_err(|error| Error::storage(error.to_string()))?,
        };
        let at = match (self.service, self.url) {
            (Some(binding), None) => ToolAddress::Service(binding.as_str().to_owned()),
            (None, Some(url)) => ToolAddress::Url(url),
            _ => {
                return Err(Error::invalid(
                    "service",
                    "A tool is either behind a `service` binding or at a `url`: give one of them.",
                ));
            }
        };
        let tool = RegisteredTool {
            definition: ToolDefinition {
                name: self.name,
                description: self.description,
                parameters,
            },
            at,
            needs_approval: self.needs_approval,
            headers: ToolHeaders::parse(self.headers)?,
            limits: ToolLimits {
                timeout_ms: self.timeout_ms.map(|limit| limit.0),
                max_output_bytes: self.max_output_bytes.map(|limit| limit.0),
            },
        };
        tool.check_reach(outbound)?;
        Ok(tool)
    }
}

/// Removes a registered tool, also one that is deployed for every agent.
#[derive(FromJson)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveTool {
    name: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RemovedTool {
    removed: bool,
}

impl Operation for RemoveTool {
    const NAME: &'static str = "removeTool";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    #[cfg(test)]
    type Output = RemovedTool;
}

impl RunAtOnce for RemoveTool {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        Reply::json(&RemovedTool {
            removed: remove_tool(agent.db, &agent.outbound.deployed(), &self.name)?,
        })
    }
}

/// Lists the registered tools, by name.
#[derive(FromJson)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListTools {}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegisteredTools {
    tools: Vec<ShownTool>,
}

impl Operation for ListTools {
    const NAME: &'static str = "listTools";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
    type Output = RegisteredTools;
}

impl RunAtOnce for ListTools {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let tools = load_tools(agent.db, &agent.outbound.deployed())?;
        Reply::json(&RegisteredTools {
            tools: tools.into_iter().map(RegisteredTool::show).collect(),
        })
    }
}
