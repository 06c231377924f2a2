//! Asks servers for their lists of tools: when a server is defined, and at the beginning
//! of a turn once a list is old. A server that is away costs a turn a short time, and the
//! tools that are known stay.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::mcp::client::{ServerClient, ServerLink};
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::listing::{ListingRoom, ServerListing};
use crate::tools::mcp::server::{MAX_SERVERS, ToolServer, change_state};
use crate::tools::registered::DeployedTools;
use crate::tools::registered::{MAX_TOOLS, RegisteredTool};
use crate::tools::rows::{AgentTools, RowToWrite, load_agent_tools, take_tools, write_row};
use base::database::atomically;
use base::error::{Error, Result};
use base::json::RawValue;
use base::outbound::{CallLimits, in_time};
use memory::Memory;

/// The time that `defineTool` waits for a server, with all of its pages.
const DEFINE_MS: i64 = 30_000;

/// The time that the beginning of a turn waits for the servers whose lists are old. They
/// are asked side by side.
const REFRESH_MS: i64 = 3_000;

/// The limits of one request about a list. All pages of a list have room for this many
/// bytes together.
const LIST_LIMITS: CallLimits = CallLimits {
    wait_ms: 10_000,
    silence_ms: 10_000,
    mute_ms: None,
    total_ms: 20_000,
    max_bytes: 1 << 20,
};

/// A server's list, and the way to speak to the server from now on.
struct HeardList {
    listed: Vec<Box<RawValue>>,
    link: ServerLink,
    headers: ResolvedHeaders,
}

/// Meets a server, and registers it with its tools. Nothing is written before the server
/// has listed its tools. Returns the server, and its tools apart.
pub async fn define_server(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    mut server: ToolServer,
) -> Result<(ToolServer, Vec<RegisteredTool>)> {
    let headers = server
        .at
        .check_reach(memory.outbound, &server.headers, "mcp")?;
    let listing = list_tools(memory, &server, headers, DEFINE_MS).await;
    let heard = listing.map_err(|reason| {
        Error::invalid(
            "mcp",
            format!("The server did not list its tools: {reason}."),
        )
    })?;
    let now_ms = memory.host.now_ms();
    atomically(memory.db, || {
        let others = load_agent_tools(memory.db, deployed)?;
        let is_other = |other: &&ToolServer| other.name != server.name;
        if others.servers.iter().filter(is_other).count() >= MAX_SERVERS {
            return Err(Error::invalid(
                "name",
                format!("An agent has at most {MAX_SERVERS} servers. `removeTool` removes one."),
            ));
        }
        let listing = heard.read(&server.name, &others);
        server.defined_at = now_ms;
        server.asked_at = now_ms;
        server.state.link = heard.link.clone();
        let digests = listing.tools.iter().map(|tool| tool.digest.clone());
        server.state.accepted = digests.collect();
        server.state.tools = listing.tools;
        server.state.left_out = listing.left_out;
        write_row(memory.db, now_ms, RowToWrite::Server(&server))?;
        let tools = take_tools(&mut server);
        Ok((server.clone(), tools))
    })
}

/// Asks the servers whose lists are old for their lists.
pub async fn refresh_servers(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    stale: &[ToolServer],
) -> Result<()> {
    let refreshed = join_all(stale.iter().map(|server| refresh(memory, deployed, server))).await;
    refreshed.into_iter().collect()
}

async fn refresh(memory: &Memory<'_>, deployed: &DeployedTools, server: &ToolServer) -> Result<()> {
    let heard = match server
        .at
        .check_reach(memory.outbound, &server.headers, "url")
    {
        Ok(headers) => list_tools(memory, server, headers, REFRESH_MS).await,
        Err(error) => Err(error.into_message().trim_end_matches('.').to_owned()),
    };
    let key = (server.name.as_str(), server.defined_at);
    let asked_at = Some(memory.host.now_ms());
    change_state(memory.db, key, asked_at, |state| {
        match heard {
            Ok(heard) => {
                let others = load_agent_tools(memory.db, deployed)?;
                let listing = heard.read(&server.name, &others);
                state.tools = listing.tools;
                state.left_out = listing.left_out;
                state.link = heard.link;
                state.problem = None;
            }
            Err(reason) => {
                state.problem = Some(format!("The server did not list its tools: {reason}."));
            }
        }
        Ok(())
    })
}

/// The server's list, or why there is none, as the end of a sentence.
async fn list_tools(
    memory: &Memory<'_>,
    server: &ToolServer,
    headers: ResolvedHeaders,
    most_ms: i64,
) -> Result<HeardList, String> {
    let is_new = server.state.link == ServerLink::default();
    let mut client = ServerClient {
        outbound: memory.outbound,
        place: server.at.to_endpoint(),
        headers,
        limits: LIST_LIMITS,
        link: server.state.link.clone(),
        last_id: 0,
        can_elicit: false,
    };
    let work = async {
        match is_new {
            true => client.open().await,
            false => client.list_again().await,
        }
    };
    let outcome = in_time(memory.outbound.sleep(most_ms), work).await;
    match outcome {
        Some(Ok(listed)) => Ok(HeardList {
            listed,
            link: client.link,
            headers: client.headers,
        }),
        Some(Err(failure)) => Err(say(&failure, &client.headers)),
        None => Err(format!("it took longer than {} s", most_ms / 1_000)),
    }
}

fn say(failure: &ServerFailure, sent: &ResolvedHeaders) -> String {
    let reason = sent.strip(failure.reason());
    reason.trim_end_matches('.').to_owned()
}

impl HeardList {
    fn read(&self, server: &str, agent: &AgentTools) -> ServerListing {
        let is_other = |tool: &&RegisteredTool| {
            let of_server = tool.of_server.as_ref();
            let replaced = of_server.map_or(tool.definition.name.as_str(), |tool| &tool.server);
            replaced != server
        };
        let taken = agent.tools.iter().filter(is_other);
        let taken: HashSet<&str> = taken.map(|tool| tool.definition.name.as_str()).collect();
        let most = usize::try_from(MAX_TOOLS).unwrap_or_default();
        ListingRoom {
            prefix: server,
            most: most.saturating_sub(taken.len()),
            taken,
            has_header_marks: self.link.is_newest(),
        }
        .read(&self.listed, &self.headers)
    }
}
