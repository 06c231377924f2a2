//! The tools that an agent's models may call in chat turns in addition to the memory tools.

use crate::json_schema::JsonSchema;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use access::{Caller, Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, Limit};
use base::outbound::Outbound;
use chat::address::tool_address::{MAX_TIMEOUT_MS, MAX_TOOL_OUTPUT_BYTES, ToolAddress, ToolLimits};
use chat::address::tool_headers::ToolHeaders;
use chat::request::client_tools::check_name;
use chat::tools::mcp::ServerSource;
use chat::tools::mcp::oauth::settings::OAuthClient;
use chat::tools::mcp::refresh::define_server;
use chat::tools::mcp::server::{ServerState, ToolServer};
use chat::tools::registered::RegisteredTool;
use chat::tools::rows::{define_tool, load_agent_tools, remove_tool, restore_tool};
use chat::tools::shown::{ServerInfo, ToolInfo};
use context::tools::is_ours;
use models::ToolDefinition;

/// Limits for a tool's description and schema: every model call sends both.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// The maximum length of a server's name: it is the prefix of its tools' names.
const MAX_SERVER_NAME_BYTES: usize = 32;

/// Registers a tool that this agent's models may call in a chat turn: behind a
/// service binding, or at an address whose origin is in `TOOL_ORIGINS`. With `mcp`,
/// registers the tools of a server of the Model Context Protocol.
///
/// The tool is called with a POST of `{name, arguments, agent, sessionId}`. The model reads
/// the answer. The header `idempotency-key` identifies the call. The tools of an MCP server
/// are called according to the protocol. Their names start with the server's name and `_`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefineTool {
    /// 1 to 64 letters, digits, `_` or `-`; for a server, 1 to 32.
    name: String,
    /// The description of the tool. A server describes its tools itself.
    description: Option<String>,
    /// JSON Schema of an object. Default: any object.
    parameters: Option<JsonObject>,
    /// The service binding's name. Set exactly one of this, `url` and `mcp`.
    service: Option<Id>,
    url: Option<String>,
    /// An MCP server: its URL, or `{service, path}` of a service binding. The server's
    /// tools are fetched immediately.
    mcp: Option<ServerSource>,
    /// The client that you registered at an MCP server's authorization server, if the server
    /// requires an authorization.
    oauth: Option<OAuthClient>,
    /// Whether the user must approve each call. Default: `false`, and `true` for a server.
    needs_approval: Option<bool>,
    /// Headers of each call. The value `secret:NAME` or `Bearer secret:NAME` is replaced
    /// with the Worker's secret of this name. The variable `TOOL_SECRETS` must assign the
    /// secret to the tool's origin.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The timeout of a call, in milliseconds. If omitted: 30 seconds without data and 5
    /// minutes in total.
    timeout_ms: Option<Limit<30_000, MAX_TIMEOUT_MS>>,
    /// The maximum size of the answer that the model reads, in bytes. A longer answer, up to
    /// 1 MiB, is stored whole.
    max_output_bytes: Option<Limit<262_144, MAX_TOOL_OUTPUT_BYTES>>,
}

/// The tool that was registered.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DefinedTool {
    Tool(ToolInfo),
    Server(ServerInfo),
}

impl Operation for DefineTool {
    const NAME: &'static str = "defineTool";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = DefinedTool;
}

impl RunWaiting for DefineTool {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if self.mcp.is_some() {
            let memory = agent.memory();
            let defined =
                define_server(&memory, &agent.deployed.tools, self.into_server()?).await?;
            let tools = defined.tools.into_iter().map(RegisteredTool::show);
            return Reply::json(&DefinedTool::Server(ServerInfo {
                authorization_url: defined.authorization_url,
                ..defined.server.show(Some(tools.collect()))
            }));
        }
        let tool = self.into_tool(agent.outbound)?;
        define_tool(agent.db, agent.host, &agent.deployed.tools, &tool)?;
        Reply::json(&DefinedTool::Tool(tool.show()))
    }
}

impl DefineTool {
    /// The validated tool. Deployed tools are validated here, too.
    pub fn into_tool(self, outbound: &dyn Outbound) -> Result<RegisteredTool> {
        let tool = self.into_tool_anywhere()?;
        tool.check_address(outbound)?;
        Ok(tool)
    }

    /// The validated tool, except for its URL: each call checks whether the URL is allowed.
    pub fn into_tool_anywhere(self) -> Result<RegisteredTool> {
        check_name("name", &self.name)?;
        if is_ours(&self.name) {
            return Err(Error::invalid(
                "name",
                "`name` is the name of a memory tool. Choose another.",
            ));
        }
        if self.mcp.is_some() {
            return Err(Error::invalid(
                "mcp",
                "A server's tools must be fetched, so it can't be deployed. Define it with \
                 `defineTool`.",
            ));
        }
        if self.oauth.is_some() {
            return Err(Error::invalid(
                "oauth",
                "`oauth` is only for a server of tools: set `mcp`.",
            ));
        }
        let too_long = |field: &str, max: usize, actual: usize| {
            Error::payload_too_large(&format!("`{field}`"), max, actual).with_field(field)
        };
        let description = self
            .description
            .ok_or_else(|| Error::invalid("description", "`description` is missing."))?;
        if description.len() > MAX_DESCRIPTION_BYTES {
            let actual = description.len();
            return Err(too_long("description", MAX_DESCRIPTION_BYTES, actual));
        }
        let parameters = match self.parameters {
            Some(schema) if schema.as_str().len() > MAX_SCHEMA_BYTES => {
                let actual = schema.as_str().len();
                return Err(too_long("parameters", MAX_SCHEMA_BYTES, actual));
            }
            Some(schema) => schema.into_raw(),
            None => json::raw(r#"{"type":"object"}"#.to_owned())?,
        };
        let at = match (self.service, self.url) {
            (Some(binding), None) => ToolAddress::Service {
                binding: binding.as_str().to_owned(),
                path: String::new(),
            },
            (None, Some(url)) => ToolAddress::Url(url),
            _ => return Err(needs_one_source()),
        };
        Ok(RegisteredTool {
            definition: ToolDefinition {
                name: self.name,
                description,
                parameters,
            },
            at,
            needs_approval: self.needs_approval.unwrap_or(false),
            headers: ToolHeaders::parse(self.headers)?,
            limits: ToolLimits {
                timeout_ms: self.timeout_ms.map(|limit| limit.0),
                max_output_bytes: self.max_output_bytes.map(|limit| limit.0),
            },
            of_server: None,
        })
    }

    /// The validated server, before the first connection.
    fn into_server(self) -> Result<ToolServer> {
        check_name("name", &self.name)?;
        if self.name.len() > MAX_SERVER_NAME_BYTES || is_ours(&self.name) {
            return Err(Error::invalid(
                "name",
                format!(
                    "The `name` of a server must have at most {MAX_SERVER_NAME_BYTES} characters \
                     and must not be the name of a memory tool."
                ),
            ));
        }
        if self.service.is_some() || self.url.is_some() {
            return Err(needs_one_source());
        }
        if self.description.is_some() || self.parameters.is_some() {
            let field = if self.description.is_some() {
                "description"
            } else {
                "parameters"
            };
            let message = format!("A server describes its own tools: omit `{field}`.");
            return Err(Error::invalid(field, message));
        }
        let oauth = self.oauth.unwrap_or_default();
        oauth.check()?;
        let source = self.mcp.ok_or_else(needs_one_source)?;
        let at = source.into_address()?;
        let path = match &at {
            ToolAddress::Service { path, .. } => path.clone(),
            ToolAddress::Url(_) => String::new(),
        };
        Ok(ToolServer {
            name: self.name,
            at,
            needs_approval: self.needs_approval.unwrap_or(true),
            headers: ToolHeaders::parse(self.headers)?,
            limits: ToolLimits {
                timeout_ms: self.timeout_ms.map(|limit| limit.0),
                max_output_bytes: self.max_output_bytes.map(|limit| limit.0),
            },
            defined_at: 0,
            asked_at: 0,
            state: ServerState {
                path,
                oauth,
                ..ServerState::default()
            },
        })
    }
}

fn needs_one_source() -> Error {
    Error::invalid(
        "service",
        "Set exactly one of `service` (a binding), `url`, or `mcp` (a server of tools).",
    )
}

/// Removes a registered tool, or a server with all of its tools. A tool that is deployed, by the
/// class's code or by the defaults for every agent, is hidden from this agent; with `restore` it is
/// shown again.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveTool {
    name: String,
    /// Instead of removing a tool, shows a deployed tool again that was removed from this agent
    /// earlier.
    #[serde(default)]
    restore: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct RemovedTool {
    removed: bool,
    /// With `restore`: whether the tool had been removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<bool>,
}

impl Operation for RemoveTool {
    const NAME: &'static str = "removeTool";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = RemovedTool;
}

impl RunAtOnce for RemoveTool {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let (removed, restored) = if !self.restore {
            (
                remove_tool(agent.db, &agent.deployed.tools, &self.name)?,
                None,
            )
        } else {
            (false, Some(restore_tool(agent.db, &self.name)?))
        };
        Reply::json(&RemovedTool { removed, restored })
    }
}

/// Lists the registered tools, those of servers included, by name.
///
/// Without the secret, a header is shown by its name, with the value `set`, and an address by
/// its host.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListTools {}

#[derive(Serialize, JsonSchema)]
pub struct RegisteredTools {
    tools: Vec<ToolInfo>,
    /// The servers that some of the tools are from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<ServerInfo>,
    /// The names of the deployed tools that were removed from this agent: `removeTool` with `restore`
    /// shows one again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<String>,
}

impl Operation for ListTools {
    const NAME: &'static str = "listTools";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    type Output = RegisteredTools;
}

impl RunAtOnce for ListTools {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let known = load_agent_tools(agent.db, &agent.deployed.tools)?;
        let servers = known.servers.into_iter();
        let tools = known.tools.into_iter().map(|tool| {
            let is_deployed = known.deployed.contains(&tool.definition.name);
            ToolInfo {
                is_deployed,
                ..tool.show()
            }
        });
        let mut shown = RegisteredTools {
            tools: tools.collect(),
            servers: servers.map(|server| server.show(None)).collect(),
            hidden: known.hidden,
        };
        if *agent.caller != Caller::Owner {
            shown.tools.iter_mut().for_each(ToolInfo::redact);
            shown.servers.iter_mut().for_each(ServerInfo::redact);
        }
        Reply::json(&shown)
    }
}
