//! The answer to `count_tokens`: an estimate of the request, the agent's own prompt and tools
//! included. It begins no turn and writes nothing.

use crate::calls::ApiHeaders;
use crate::history_position::named_session;
use crate::request::{Item, ParsedRequest, RequestFields};
use access::permit_by_name;
use base::error::Result;
use base::ids::Id;
use base::json::{self, JsonObject, json};
use base::tokens;
use chat::run::agent::{Agent, CHAT_RULE};
use memory::BlockScope;
use memory::prompt::{PromptFormat, render};
use memory::view::read_view;
use store::config::load_config;
use store::memory_use::MemoryUse;

/// About how many tokens the structure of a message takes.
const PER_ITEM: i64 = 4;

/// `address`: the session in the request's URL.
pub async fn count(
    agent: &Agent<'_>,
    address: Option<&Id>,
    headers: &ApiHeaders,
    body: &[u8],
) -> Result<String> {
    permit_by_name(agent.caller, CHAT_RULE)?;
    let named = named_session(agent, address, headers)?;
    let body: JsonObject = json::parse(body)?;
    // `max_tokens` is not a field of this request.
    RequestFields::of("body", body.as_str())?;
    let parsed = super::request::parse(body.as_str().as_bytes())?;
    let mut total = of_request(&parsed);
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    if headers.memory_of(agent.caller, &config)? != MemoryUse::Off {
        let scope = match &named {
            Some(id) => BlockScope::Session(id),
            None => BlockScope::Agent,
        };
        let view = read_view(&agent.memory(), scope).await?;
        total += tokens::estimate(&render(&view, PromptFormat::Text));
    }
    Ok(json::text(&json!({"input_tokens": total})))
}

fn of_request(parsed: &ParsedRequest) -> i64 {
    let system = parsed.system.iter().map(|text| tokens::estimate(text));
    let tools = parsed
        .given_tools
        .values()
        .map(|tool| tokens::estimate(tool.get()));
    let items = parsed.items.iter().map(|item| {
        PER_ITEM
            + match item {
                Item::User { text, .. } | Item::Result { text, .. } => tokens::estimate(text),
                Item::Assistant { text, calls, .. } => {
                    let calls = calls
                        .iter()
                        .map(|call| tokens::estimate(call.arguments.as_str()));
                    tokens::estimate(text) + calls.sum::<i64>()
                }
            }
    });
    system.chain(tools).chain(items).sum()
}
