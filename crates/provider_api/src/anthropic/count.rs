//! The answer to `count_tokens`: an estimate of the request, the agent's own prompt and tools
//! included. It begins no turn and writes nothing.

use crate::calls::ApiHeaders;
use crate::request::{Item, ParsedRequest, RequestFields};
use base::error::Result;
use base::json::{self, JsonObject, json};
use base::tokens;
use chat::request::api_turn::MemoryUse;
use chat::run::agent::Agent;
use memory::BlockScope;
use memory::prompt::{PromptFormat, render};
use memory::view::read_view;

/// About how many tokens the form of a message takes.
const PER_ITEM: i64 = 4;

pub async fn count(agent: &Agent<'_>, headers: &ApiHeaders, body: &[u8]) -> Result<String> {
    let body: JsonObject = json::parse(body)?;
    // `max_tokens` is no field of this request.
    RequestFields::of("body", body.as_str())?;
    let parsed = super::request::parse(body.as_str().as_bytes())?;
    let mut total = of_request(&parsed);
    if headers.memory != MemoryUse::Off {
        let scope = match headers.session_id.as_ref().or(agent.caller.only_session()) {
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
                Item::Assistant { text, calls } => {
                    let calls = calls
                        .iter()
                        .map(|call| tokens::estimate(call.arguments.as_str()));
                    tokens::estimate(text) + calls.sum::<i64>()
                }
            }
    });
    system.chain(tools).chain(items).sum()
}
