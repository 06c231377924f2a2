//! A call of a tool of an MCP server.

use std::cell::Cell;

use crate::address::tool_address::ToolAddress;
use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::exchange::{INPUT_REQUIRED, ToolExchange, asks_for_input};
use crate::tools::mcp::client::{ServerClient, encode_header};
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::oauth::access::{AuthorizedServer, may_be_authorized, with_token};
use crate::tools::mcp::result::read_result;
use crate::tools::mcp::server::{
    ServerTool, record_changed_list, record_needed_authorization, store_link,
};
use crate::turn::CallState;
use base::json::{self, JsonObject};
use base::outbound::CallLimits;
use memory::Memory;
use serde_json::Value;

/// More than the number of requests in one round.
const IDS_PER_ROUND: i64 = 1_000;

/// The maximum length of an argument in a header.
const MAX_HEADER_BYTES: usize = 4 << 10;

/// The headers that repeat arguments. An argument that is omitted, or `null`, has none.
/// `None`: an argument is too long.
fn repeat_in_headers(tool: &ServerTool, arguments: &JsonObject) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    if tool.headers.is_empty() {
        return Some(headers);
    }
    let given = json::decode_tree(arguments.as_str()).unwrap_or_default();
    for (argument, header) in &tool.headers {
        let value = match given.get(argument) {
            Some(Value::String(text)) => encode_header(text),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            // The server must reject a value of another type.
            _ => continue,
        };
        if value.len() > MAX_HEADER_BYTES {
            return None;
        }
        headers.push((header.clone(), value));
    }
    Some(headers)
}

/// Calls a tool once. `name` is the tool's name for models. `headers` are those of this
/// call, in addition to the server's.
pub async fn call_server_tool(
    memory: &Memory<'_>,
    (name, tool): (&str, &ServerTool),
    arguments: &JsonObject,
    (at, limits): (&ToolAddress, CallLimits),
    (resolved, mut headers): (ResolvedHeaders, Vec<(String, String)>),
    exchange: &ToolExchange<'_>,
) -> CallState {
    if tool.link.is_newest() {
        match repeat_in_headers(tool, arguments) {
            Some(repeated) => headers.extend(repeated),
            None => {
                return CallState::failed(format!(
                    "`{name}` was not called: an argument that is sent in a header is longer than \
                     {MAX_HEADER_BYTES} bytes."
                ));
            }
        }
    }
    let mut client = ServerClient {
        outbound: memory.outbound,
        endpoint: at.to_endpoint(),
        headers: resolved,
        limits,
        link: tool.link.clone(),
        // Each round is a separate request.
        last_id: i64::from(exchange.round) * IDS_PER_ROUND,
        asks: exchange.asks,
        has_new_list: Cell::new(false),
    };
    let accepts_token = may_be_authorized(memory.outbound, at, &client.headers);
    let server = AuthorizedServer {
        name: &tool.server,
        at,
    };
    let outcome = with_token(memory, server, &mut client, async |client| {
        client.call(&tool.name, arguments, &headers, exchange).await
    })
    .await;
    if client.link != tool.link {
        // If the MCP session could not be stored, the next call starts a new one.
        let _ = store_link(memory.db, tool, &client.link);
    }
    if client.has_new_list.get() {
        // If this can't be stored, the list is requested when it is old.
        let _ = record_changed_list(memory.db, tool);
    }
    match outcome {
        Ok(result) => {
            let may_ask = exchange.asks.are_allowed() && client.link.is_newest();
            let needs_input = may_ask && result.get().contains(INPUT_REQUIRED);
            let whole = needs_input.then(|| {
                let text = client.headers.strip_json(result.get().to_owned());
                CallState::done(text, true)
            });
            match whole.filter(asks_for_input) {
                Some(question) => question,
                None => read_result(name, &result, &client.headers),
            }
        }
        Err(ServerFailure::Unauthorized(challenge)) if accepts_token => {
            // Without this record, `listTools` would show it only after the list is
            // requested again.
            let _ = record_needed_authorization(memory.db, tool, challenge);
            CallState::failed(format!(
                "`{name}` was not called: its server requires an authorization that a person has \
                 to give first. Tell the user that `{}` must be authorized.",
                tool.server
            ))
        }
        Err(failure) => {
            let reason = client.headers.strip(failure.reason());
            let reason = reason.trim_end_matches('.');
            CallState::failed(format!("`{name}` returned no result: {reason}."))
        }
    }
}
