//! A call of a server's tool.

use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::mcp::client::ServerClient;
use crate::tools::mcp::result::read_result;
use crate::tools::mcp::server::{ServerTool, store_link};
use crate::turn::CallState;
use base::json::JsonObject;
use base::outbound::{CallLimits, Endpoint};
use memory::Memory;

/// Calls a tool, once. `name` is the tool's name for models. `headers` are those of this
/// call, beside the server's.
pub async fn call_server_tool(
    memory: &Memory<'_>,
    (name, tool): (&str, &ServerTool),
    arguments: &JsonObject,
    (place, limits): (Endpoint, CallLimits),
    (resolved, headers): (ResolvedHeaders, Vec<(String, String)>),
) -> CallState {
    let mut client = ServerClient {
        outbound: memory.outbound,
        place,
        headers: resolved,
        limits,
        link: tool.link.clone(),
        last_id: 0,
    };
    let outcome = client.call(&tool.name, arguments, &headers).await;
    if client.link != tool.link {
        // A session that is not kept is begun anew by the next call.
        let _ = store_link(memory.db, tool, &client.link);
    }
    match outcome {
        Ok(result) => read_result(name, &result, &client.headers),
        Err(failure) => {
            let reason = client.headers.strip(failure.reason());
            let reason = reason.trim_end_matches('.');
            CallState::failed(format!("`{name}` returned no result: {reason}."))
        }
    }
}
