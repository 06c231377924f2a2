//! The stored rows of registered tools and tool servers, one row each. A server's row
//! contains the tools that the server listed.

use crate::address::tool_address::{ToolAddress, ToolLimits};
use crate::address::tool_headers::ToolHeaders;
use crate::tools::mcp::oauth::stored::delete_authorization;
use crate::tools::mcp::server::{MAX_SERVERS, ServerState, ToolServer};
use crate::tools::registered::{DeployedTools, MAX_TOOLS, RegisteredTool};
use base::columns::load;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::json;
use base::row;
use models::ToolDefinition;
use store::stored::{REMOVED_TOOLS, find_stored, write_stored};

/// The schema column of a server's row. Its tools have their own schemas.
const NO_SCHEMA: &str = "{}";

/// The tools that an agent's models may call in addition to the memory tools.
#[derive(Default)]
pub struct AgentTools {
    /// All registered tools, those of servers included, by name.
    pub tools: Vec<RegisteredTool>,
    /// The servers, without their tools.
    pub servers: Vec<ToolServer>,
    /// The names of the deployed tools in `tools`.
    pub deployed: Vec<String>,
    /// The names of the deployed tools that the agent removed and didn't replace.
    pub hidden: Vec<String>,
}

/// A stored row: one of the agent's own tools, or a tool server.
pub enum ToolRow {
    Tool(Box<RegisteredTool>),
    Server(Box<ToolServer>),
}

row! {
    for ToolRow {
        name: &str = "name",
        description: Option<&str> = "description",
        parameters: Option<&str> = "parameters",
        service: Option<&str> = "service",
        url: Option<&str> = "url",
        needs_approval: bool = "needs_approval",
        headers: Option<&str> = "headers",
        timeout_ms: Option<i64> = "timeout_ms",
        max_output_bytes: Option<i64> = "max_output_bytes",
        defined_at: i64 = "defined_at",
        server: Option<&str> = "server",
        asked_at: Option<i64> = "asked_at",
    }
    {
        let damaged = || Error::corrupt_row(name, "tool");
        let state = match server {
            Some(json) => Some(ServerState::from_json(json).ok_or_else(damaged)?),
            None => None,
        };
        let at = match (service, url) {
            (Some(binding), _) => ToolAddress::Service {
                binding: binding.to_owned(),
                path: state
                    .as_ref()
                    .map(|state| state.path.clone())
                    .unwrap_or_default(),
            },
            (None, Some(url)) => ToolAddress::Url(url.to_owned()),
            (None, None) => return Err(damaged()),
        };
        let headers = ToolHeaders::from_json(headers).ok_or_else(damaged)?;
        let limits = ToolLimits {
            timeout_ms,
            max_output_bytes,
        };
        if let Some(state) = state {
            return Ok(Self::Server(Box::new(ToolServer {
                name: name.to_owned(),
                at,
                needs_approval,
                headers,
                limits,
                defined_at,
                asked_at: asked_at.unwrap_or_default(),
                state,
            })));
        }
        Ok(Self::Tool(Box::new(RegisteredTool {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: description.ok_or_else(damaged)?.to_owned(),
                parameters: json::raw(parameters.ok_or_else(damaged)?.to_owned()).map_err(|_| damaged())?,
            },
            at,
            needs_approval,
            headers,
            limits,
            of_server: None,
        })))
    }
}

row! {
    /// A row, and when it was defined.
    pub struct DatedToolRow {
        pub defined_at: i64 = "defined_at",
        pub row: ToolRow = ToolRow::COLUMNS,
    }
}

/// The key of the deployed tools that the agent removed: a JSON list of names.
const REMOVED: &str = REMOVED_TOOLS;

/// Up to `limit` rows whose names come after this name, sorted by name, each with the time
/// of its definition.
pub fn load_tools_after(db: &dyn Database, after: &str, limit: i64) -> Result<Vec<DatedToolRow>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_tools
          WHERE name > ?1
          ORDER BY name
          LIMIT ?2",
        DatedToolRow::COLUMNS
    );
    load(db, &sql, &[after.into(), limit.into()])
}

/// The agent's tools by name: its own, the deployed ones that it neither redefined nor
/// removed, and those of its servers. If a name occurs twice, the first wins.
pub fn load_agent_tools(db: &dyn Database, deployed: &DeployedTools) -> Result<AgentTools> {
    let columns = ToolRow::COLUMNS;
    let most = MAX_TOOLS + MAX_SERVERS as i64;
    let sql = format!("SELECT {columns} FROM cf_agents_tools ORDER BY name LIMIT {most}");
    let mut agent = AgentTools::default();
    for row in load::<ToolRow>(db, &sql, &[])? {
        match row {
            ToolRow::Tool(tool) => agent.tools.push(*tool),
            ToolRow::Server(server) => agent.servers.push(*server),
        }
    }
    let deployed = &deployed.0;
    if deployed.is_empty() && agent.servers.is_empty() {
        return Ok(agent);
    }
    if !deployed.is_empty() {
        let removed = load_removed(db)?;
        let is_replaced = |name: &String| agent.servers.iter().any(|server| server.name == *name);
        for tool in deployed {
            let name = &tool.definition.name;
            if is_replaced(name) {
                continue;
            }
            if !removed.contains(name) {
                if push_new(&mut agent.tools, tool.clone()) {
                    agent.deployed.push(name.clone());
                }
            } else if !has_tool(&agent.tools, name) {
                agent.hidden.push(name.clone());
            }
        }
    }
    for server in &mut agent.servers {
        for tool in take_tools(server) {
            push_new(&mut agent.tools, tool);
        }
    }
    agent
        .tools
        .sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
    Ok(agent)
}

/// Like [`load_agent_tools`], without the servers.
pub fn load_tools(db: &dyn Database, deployed: &DeployedTools) -> Result<Vec<RegisteredTool>> {
    load_agent_tools(db, deployed).map(|agent| agent.tools)
}

/// Adds a tool if its name is free and the limit isn't reached. `false`: it was not added.
fn push_new(tools: &mut Vec<RegisteredTool>, tool: RegisteredTool) -> bool {
    let is_free = !has_tool(tools, &tool.definition.name) && (tools.len() as i64) < MAX_TOOLS;
    if is_free {
        tools.push(tool);
    }
    is_free
}

fn has_tool(tools: &[RegisteredTool], name: &str) -> bool {
    tools.iter().any(|known| known.definition.name == name)
}

/// Moves the tools out of their server.
pub fn take_tools(server: &mut ToolServer) -> Vec<RegisteredTool> {
    let definitions = std::mem::take(&mut server.state.tools);
    let tools = definitions.into_iter().map(|definition| {
        let of_server = server.tool_of(&definition);
        RegisteredTool {
            at: server.at.clone(),
            needs_approval: server.needs_approval || of_server.is_changed,
            headers: server.headers.clone(),
            limits: server.limits,
            of_server: Some(of_server),
            definition: ToolDefinition {
                name: definition.model_name,
                description: definition.description,
                parameters: definition.schema,
            },
        }
    });
    tools.collect()
}

/// The names of the deployed tools that the agent removed.
pub fn load_removed(db: &dyn Database) -> Result<Vec<String>> {
    match find_stored(db, REMOVED)? {
        Some(json) => json::decode(&json).map_err(|_| Error::corrupt_row(REMOVED, "configuration")),
        None => Ok(Vec::new()),
    }
}

/// Defines a tool, or replaces its definition.
pub fn define_tool(
    db: &dyn Database,
    host: &dyn Host,
    deployed: &DeployedTools,
    tool: &RegisteredTool,
) -> Result<()> {
    atomically(db, || {
        let name = &tool.definition.name;
        let agent = load_agent_tools(db, deployed)?;
        check_owner(&agent, name)?;
        delete_authorization(db, name)?;
        // Replacing a server also removes its tools.
        let others = agent.tools.iter().filter(|other| match &other.of_server {
            Some(of_server) => of_server.server != *name,
            None => other.definition.name != *name,
        });
        if others.count() as i64 >= MAX_TOOLS {
            return Err(Error::invalid(
                "name",
                format!("An agent has at most {MAX_TOOLS} tools. `removeTool` removes one."),
            ));
        }
        write_row(db, host.now_ms(), RowToWrite::Tool(tool))
    })
}

/// Refuses the name of a tool that belongs to a server.
fn check_owner(agent: &AgentTools, name: &str) -> Result<()> {
    let of_server = agent.tools.iter().find_map(|tool| {
        let of_server = tool.of_server.as_ref()?;
        (tool.definition.name == name).then_some(of_server)
    });
    match of_server {
        Some(tool) => Err(Error::invalid(
            "name",
            format!(
                "`{name}` is a tool of the server `{}`. Name the server, or choose another name.",
                tool.server
            ),
        )),
        None => Ok(()),
    }
}

/// A row to write.
pub enum RowToWrite<'a> {
    Tool(&'a RegisteredTool),
    Server(&'a ToolServer),
}

pub fn write_row(db: &dyn Database, now_ms: i64, row: RowToWrite<'_>) -> Result<()> {
    let (name, description, parameters) = match row {
        RowToWrite::Tool(RegisteredTool { definition, .. }) => (
            &definition.name,
            definition.description.as_str(),
            definition.parameters.get(),
        ),
        RowToWrite::Server(server) => (&server.name, "", NO_SCHEMA),
    };
    let (at, needs_approval, headers, limits) = match row {
        RowToWrite::Tool(tool) => (&tool.at, tool.needs_approval, &tool.headers, tool.limits),
        RowToWrite::Server(server) => (
            &server.at,
            server.needs_approval,
            &server.headers,
            server.limits,
        ),
    };
    let (server, asked_at) = match row {
        RowToWrite::Tool(_) => (None, None),
        RowToWrite::Server(server) => (Some(server.to_json()?), Some(server.asked_at)),
    };
    let (service, url) = match at {
        ToolAddress::Service { binding, .. } => (Some(binding.as_str()), None),
        ToolAddress::Url(url) => (None, Some(url.as_str())),
    };
    db.run(
        "INSERT INTO cf_agents_tools (name, description, parameters, service, url, needs_approval, defined_at, headers, timeout_ms, max_output_bytes, server, asked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (name) DO UPDATE
            SET description = excluded.description,
                parameters = excluded.parameters,
                service = excluded.service,
                url = excluded.url,
                needs_approval = excluded.needs_approval,
                defined_at = excluded.defined_at,
                headers = excluded.headers,
                timeout_ms = excluded.timeout_ms,
                max_output_bytes = excluded.max_output_bytes,
                server = excluded.server,
                asked_at = excluded.asked_at",
        &[
            name.as_str().into(),
            description.into(),
            parameters.into(),
            service.into(),
            url.into(),
            needs_approval.into(),
            now_ms.into(),
            headers.to_json().as_deref().into(),
            limits.timeout_ms.into(),
            limits.max_output_bytes.into(),
            server.as_deref().into(),
            asked_at.into(),
        ],
    )
}

/// Removes a tool, or a server with its tools. `false`: there was no such tool. A deployed
/// tool stays removed for this agent until it is restored, or the agent defines a tool with
/// this name.
pub fn remove_tool(db: &dyn Database, deployed: &DeployedTools, name: &str) -> Result<bool> {
    atomically(db, || {
        let rows = db.rows(
            "DELETE FROM cf_agents_tools WHERE name = ?1 RETURNING name",
            &[name.into()],
        )?;
        delete_authorization(db, name)?;
        let deployed_tools = &deployed.0;
        let is_deployed = |name: &str| {
            deployed_tools
                .iter()
                .any(|tool| tool.definition.name == name)
        };
        if !is_deployed(name) {
            if rows.is_empty() {
                check_owner(&load_agent_tools(db, deployed)?, name)?;
            }
            return Ok(!rows.is_empty());
        }
        let mut removed = load_removed(db)?;
        if removed.iter().any(|removed| removed == name) {
            return Ok(!rows.is_empty());
        }
        removed.retain(|name| is_deployed(name));
        removed.push(name.to_owned());
        write_stored(db, REMOVED, &removed)?;
        Ok(true)
    })
}

/// Restores a deployed tool that the agent removed. `false`: it had not removed such a
/// tool.
pub fn restore_tool(db: &dyn Database, name: &str) -> Result<bool> {
    atomically(db, || {
        let mut removed = load_removed(db)?;
        let count = removed.len();
        removed.retain(|removed| removed != name);
        let is_restored = removed.len() < count;
        if is_restored {
            write_stored(db, REMOVED, &removed)?;
        }
        Ok(is_restored)
    })
}
