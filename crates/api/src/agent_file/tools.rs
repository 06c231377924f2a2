//! Registered tools and servers of tools as lines, and back. A tool of a file is checked as
//! `defineTool` checks it.

use super::lines::{AgentLineKind, ToolLine};
use crate::operations::chat_tools::DefineTool;
use base::database::Database;
use base::error::{Error, Result};
use base::json::{self, JsonObject, json};
use chat::address::tool_address::{ToolAddress, ToolLimits};
use chat::address::tool_headers::ToolHeaders;
use chat::request::client_tools::check_name;
use chat::tools::mcp::server::{ServerState, ToolServer};
use chat::tools::registered::RegisteredTool;
use chat::tools::rows::{DatedToolRow, ToolRow, load_tools_after};
use lifecycle::transfer::add_rows;
use lifecycle::transfer::lines::{FileTime, count, render};

/// Tools per statement. With schemas of at most 64 KiB, half a megabyte; a server's row may
/// be longer.
const TOOLS_BATCH: i64 = 8;

/// Adds tools. Returns the name after which to continue; `None`: there are no more.
pub fn add_tools(db: &dyn Database, after: &str, page: &mut String) -> Result<Option<String>> {
    let rows = load_tools_after(db, after, TOOLS_BATCH)?;
    add_rows(
        rows,
        TOOLS_BATCH,
        page,
        |DatedToolRow { defined_at, row }, page| {
            let line = match row {
                ToolRow::Tool(tool) => of_tool(*tool, defined_at)?,
                ToolRow::Server(server) => of_server(*server),
            };
            page.push_str(&render(&line)?);
            Ok(line.name)
        },
    )
}

fn service_and_url(at: &ToolAddress) -> (Option<String>, Option<String>) {
    match at {
        ToolAddress::Service { binding, .. } => (Some(binding.clone()), None),
        ToolAddress::Url(url) => (None, Some(url.clone())),
    }
}

fn of_tool(tool: RegisteredTool, defined_at: i64) -> Result<ToolLine> {
    let (service, url) = service_and_url(&tool.at);
    let damaged = |_| Error::corrupt_row(&tool.definition.name, "tool");
    let parameters = json::decode::<JsonObject>(tool.definition.parameters.get());
    Ok(ToolLine {
        kind: AgentLineKind::Tool,
        parameters: Some(parameters.map_err(damaged)?),
        name: tool.definition.name.clone(),
        description: Some(tool.definition.description),
        service,
        url,
        needs_approval: tool.needs_approval,
        headers: tool.headers.names(),
        timeout_ms: tool.limits.timeout_ms.map(count),
        max_output_bytes: tool.limits.max_output_bytes.map(count),
        defined_at: FileTime::of(defined_at),
        server: None,
        asked_at: None,
    })
}

fn of_server(server: ToolServer) -> ToolLine {
    let (service, url) = service_and_url(&server.at);
    ToolLine {
        kind: AgentLineKind::Tool,
        name: server.name,
        description: None,
        parameters: None,
        service,
        url,
        needs_approval: server.needs_approval,
        headers: server.headers.names(),
        timeout_ms: server.limits.timeout_ms.map(count),
        max_output_bytes: server.limits.max_output_bytes.map(count),
        defined_at: FileTime::of(server.defined_at),
        asked_at: Some(FileTime::of(server.asked_at)),
        server: Some(ServerState {
            link: server.state.link.without_session(),
            // A file contains no secrets and no names of them, and its agent has no tokens.
            oauth: server.state.oauth.without_secret(),
            needs_authorization: None,
            ..server.state
        }),
    }
}

/// The tool of a line, without its headers. This Worker may be unable to call it.
pub fn into_tool(line: &ToolLine) -> Result<RegisteredTool> {
    let definition = json::encode(&json!({
        "name": line.name,
        "description": line.description,
        "parameters": line.parameters,
        "service": line.service,
        "url": line.url,
        "needsApproval": line.needs_approval,
        "timeoutMs": line.timeout_ms,
        "maxOutputBytes": line.max_output_bytes,
    }))?;
    let definition: DefineTool = json::parse(definition.as_bytes())?;
    definition.into_tool_anywhere()
}

/// The line as an export writes it.
pub fn plain_tool(line: ToolLine) -> Result<ToolLine> {
    if line.server.is_some() {
        return Ok(line);
    }
    Ok(ToolLine {
        headers: line.headers.clone(),
        ..of_tool(into_tool(&line)?, line.defined_at.0)?
    })
}

/// The server of a line.
pub fn into_server(line: ToolLine, headers: ToolHeaders) -> Result<ToolServer> {
    check_name("name", &line.name)?;
    let state = line.server.unwrap_or_default();
    let oauth = state.oauth.clone().without_secret();
    oauth.check()?;
    let at = match (line.service, line.url) {
        (Some(binding), None) => ToolAddress::Service {
            binding,
            path: state.path.clone(),
        },
        (None, Some(url)) => ToolAddress::Url(url),
        _ => {
            return Err(Error::invalid(
                "service",
                "Set either `service` (a binding) or `url` for a server of tools.",
            ));
        }
    };
    Ok(ToolServer {
        name: line.name,
        at,
        needs_approval: line.needs_approval,
        headers,
        limits: ToolLimits {
            timeout_ms: line.timeout_ms.map(|count| count.0),
            max_output_bytes: line.max_output_bytes.map(|count| count.0),
        },
        defined_at: line.defined_at.0,
        asked_at: line.asked_at.map_or(0, |at| at.0),
        state: ServerState {
            link: state.link.without_session(),
            oauth,
            needs_authorization: None,
            ..state
        },
    })
}
