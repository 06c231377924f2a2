//! Loads servers' lists of tools: when a server is defined, and at the beginning of a turn once a
//! list is stale. An unavailable server delays a turn only briefly, and its known tools stay.

use std::cell::Cell;

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::exchange::UserQuestions;
use crate::tools::mcp::client::{ServerClient, ServerLink};
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::listing::{ListingCapacity, ServerListing};
use crate::tools::mcp::oauth::access::{AuthorizedServer, find_url, may_be_authorized, with_token};
use crate::tools::mcp::oauth::begin::begin;
use crate::tools::mcp::oauth::challenge::Challenge;
use crate::tools::mcp::oauth::settings::OAuthSettings;
use crate::tools::mcp::oauth::stored::{delete_authorization, find_authorization};
use crate::tools::mcp::server::{MAX_SERVERS, ToolServer, change_state};
use crate::tools::registered::DeployedTools;
use crate::tools::registered::{MAX_TOOLS, RegisteredTool};
use crate::tools::rows::{AgentTools, RowToWrite, load_agent_tools, take_tools, write_row};
use base::database::atomically;
use base::error::{Error, Result};
use base::json::RawValue;
use base::outbound::{CallLimits, in_time};
use memory::Memory;

/// How long `defineTool` waits for a server, with all of its pages.
const DEFINE_MS: i64 = 30_000;

/// How long the beginning of a turn waits for the servers whose lists are stale. They are called
/// concurrently.
const REFRESH_MS: i64 = 3_000;

/// The limits of one request for a list. All pages of a list may have this many bytes together.
const LIST_LIMITS: CallLimits = CallLimits {
    wait_ms: 10_000,
    silence_ms: 10_000,
    no_content_ms: None,
    total_ms: 20_000,
    max_bytes: 1 << 20,
};

/// A server's list, and how to call the server from now on.
#[derive(Default)]
struct ServerToolList {
    listed: Vec<Box<RawValue>>,
    link: ServerLink,
    headers: ResolvedHeaders,
}

/// A server that was registered.
pub struct DefinedServer {
    /// The server without its tools.
    pub server: ToolServer,
    pub tools: Vec<RegisteredTool>,
    /// The address that a person has to open before the server lists its tools.
    pub authorization_url: Option<String>,
}

/// Connects to a server, and registers it with its tools. Writes nothing before the server has
/// listed its tools, or has required that a person authorize it.
pub async fn define_server(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    mut server: ToolServer,
) -> Result<DefinedServer> {
    let headers = server
        .at
        .check_address(memory.outbound, &server.headers, "mcp")?;
    let accepts_token = find_url(&server.at, &headers).is_some();
    let has_key = || OAuthSettings::read(memory.outbound).is_ok();
    let received = match list_tools(memory, &server, headers, DEFINE_MS).await {
        Ok(received) => {
            let wanted = find_wanted(memory, deployed, &server)?;
            server.state.needs_authorization = wanted.filter(|_| accepts_token);
            received
        }
        Err(NoList {
            challenge: Some(challenge),
            ..
        }) if accepts_token && has_key() => {
            server.state.needs_authorization = Some(challenge);
            ServerToolList::default()
        }
        Err(NoList { reason, challenge }) => {
            let hint = if challenge.is_some() && accepts_token {
                " To have a person authorize it, set `PUBLIC_URL` and `TOOL_TOKEN_KEY`."
            } else {
                ""
            };
            return Err(Error::invalid(
                "mcp",
                format!("The server did not list its tools: {reason}.{hint}"),
            ));
        }
    };
    let started = match server.state.needs_authorization {
        Some(_) => Some(begin(memory, &server).await?),
        None => None,
    };
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
        let listing = received.read(&server.name, &others);
        server.defined_at = now_ms;
        server.asked_at = now_ms;
        server.state.link = received.link.clone();
        let digests = listing.tools.iter().map(|tool| tool.digest.clone());
        server.state.accepted = digests.collect();
        server.state.tools = listing.tools;
        server.state.left_out = listing.left_out;
        write_row(memory.db, now_ms, RowToWrite::Server(&server))?;
        match &started {
            Some(started) => started.store(memory, &server.name)?,
            None => forget_other_authorization(memory, &server, accepts_token)?,
        }
        let tools = take_tools(&mut server);
        Ok(DefinedServer {
            server: server.clone(),
            tools,
            authorization_url: started.as_ref().map(|started| started.url.clone()),
        })
    })
}

/// The authorization that the server required when it was called, beyond that for its list of
/// tools.
fn find_wanted(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    server: &ToolServer,
) -> Result<Option<Challenge>> {
    let known = load_agent_tools(memory.db, deployed)?.servers;
    let is_same_server = |known: &&ToolServer| known.name == server.name && known.at == server.at;
    let wanted = known.iter().find(is_same_server);
    let wanted = wanted.and_then(|known| known.state.needs_authorization.clone());
    Ok(wanted.filter(Challenge::wants_more_scope))
}

/// Deletes an authorization that the server no longer uses: it was for another address, or the
/// operator has given the server a credential.
fn forget_other_authorization(
    memory: &Memory<'_>,
    server: &ToolServer,
    accepts_token: bool,
) -> Result<()> {
    let is_current = match (server.at.url(), OAuthSettings::read(memory.outbound)) {
        (Some(url), Ok(settings)) if accepts_token => {
            find_authorization(memory, &settings, &server.name, url)?.is_some()
        }
        _ => false,
    };
    if is_current {
        Ok(())
    } else {
        delete_authorization(memory.db, &server.name)
    }
}

/// Loads a server's tools after a person has authorized it. If it has listed none before, its tools
/// are accepted as if the operator had just defined it.
pub async fn list_after_authorization(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    server: &ToolServer,
) -> Result<()> {
    let is_first = server.state.link == ServerLink::default();
    refresh(memory, deployed, server, DEFINE_MS, is_first).await
}

/// Loads the lists of the servers whose lists are stale.
pub async fn refresh_servers(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    stale: &[ToolServer],
) -> Result<()> {
    let refreshing = stale
        .iter()
        .map(|server| refresh(memory, deployed, server, REFRESH_MS, false));
    let refreshed = join_all(refreshing).await;
    refreshed.into_iter().collect()
}

/// `is_accepted`: the tools of this list need no further approval.
async fn refresh(
    memory: &Memory<'_>,
    deployed: &DeployedTools,
    server: &ToolServer,
    most_ms: i64,
    is_accepted: bool,
) -> Result<()> {
    let received = match server
        .at
        .check_address(memory.outbound, &server.headers, "url")
    {
        Ok(headers) => {
            let accepts_token = may_be_authorized(memory.outbound, &server.at, &headers);
            let listing = list_tools(memory, server, headers, most_ms).await;
            listing.map_err(|failed| NoList {
                challenge: failed.challenge.filter(|_| accepts_token),
                ..failed
            })
        }
        Err(error) => Err(NoList {
            reason: error.into_message().trim_end_matches('.').to_owned(),
            challenge: None,
        }),
    };
    let key = (server.name.as_str(), server.defined_at);
    let asked_at = Some(memory.host.now_ms());
    change_state(memory.db, key, asked_at, |state| {
        state.has_changed = false;
        match received {
            Ok(received) => {
                let others = load_agent_tools(memory.db, deployed)?;
                let listing = received.read(&server.name, &others);
                state.tools = listing.tools;
                state.left_out = listing.left_out;
                state.link = received.link;
                state.problem = None;
                let wanted = state.needs_authorization.take();
                state.needs_authorization = wanted.filter(Challenge::wants_more_scope);
                if is_accepted {
                    let digests = state.tools.iter().map(|tool| tool.digest.clone());
                    state.accepted = digests.collect();
                }
            }
            Err(NoList { reason, challenge }) => {
                state.needs_authorization = challenge.or(state.needs_authorization.take());
                state.problem = Some(format!("The server did not list its tools: {reason}."));
            }
        }
        Ok(())
    })
}

/// Why there is no list.
struct NoList {
    /// The end of a sentence.
    reason: String,
    /// The authorization that the server requires.
    challenge: Option<Challenge>,
}

async fn list_tools(
    memory: &Memory<'_>,
    server: &ToolServer,
    headers: ResolvedHeaders,
    most_ms: i64,
) -> Result<ServerToolList, NoList> {
    let is_new = server.state.link == ServerLink::default();
    let mut client = ServerClient {
        outbound: memory.outbound,
        endpoint: server.at.to_endpoint(),
        headers,
        limits: LIST_LIMITS,
        link: server.state.link.clone(),
        last_id: 0,
        asks: UserQuestions::Nothing,
        has_new_list: Cell::new(false),
    };
    let authorized = AuthorizedServer {
        name: &server.name,
        at: &server.at,
    };
    let work = with_token(memory, authorized, &mut client, async |client| {
        if is_new {
            client.open().await
        } else {
            client.relist().await
        }
    });
    let outcome = in_time(memory.outbound.sleep(most_ms), work).await;
    match outcome {
        Some(Ok(listed)) => Ok(ServerToolList {
            listed,
            link: client.link,
            headers: client.headers,
        }),
        Some(Err(failure)) => Err(NoList {
            reason: describe(&failure, &client.headers),
            challenge: match failure {
                ServerFailure::Unauthorized(challenge) => Some(challenge),
                _ => None,
            },
        }),
        None => Err(NoList {
            reason: format!("it took longer than {} s", most_ms / 1_000),
            challenge: None,
        }),
    }
}

fn describe(failure: &ServerFailure, sent: &ResolvedHeaders) -> String {
    let reason = sent.strip(failure.reason());
    reason.trim_end_matches('.').to_owned()
}

impl ServerToolList {
    fn read(&self, server: &str, agent: &AgentTools) -> ServerListing {
        let is_other = |tool: &&RegisteredTool| {
            let of_server = tool.of_server.as_ref();
            let replaced = of_server.map_or(tool.definition.name.as_str(), |tool| &tool.server);
            replaced != server
        };
        let used_names = agent.tools.iter().filter(is_other);
        let used_names: HashSet<&str> = used_names
            .map(|tool| tool.definition.name.as_str())
            .collect();
        let most = usize::try_from(MAX_TOOLS).unwrap_or_default();
        ListingCapacity {
            prefix: server,
            most: most.saturating_sub(used_names.len()),
            used_names,
            has_header_marks: self.link.is_newest(),
        }
        .read(&self.listed, &self.headers)
    }
}
