//! The doors of the providers' APIs over HTTP: see `provider_api`. The same tokens allow these
//! turns as allow chat.

use super::route::parse_session_id;
use base::error::Result;
use chat::run::agent::Agent;
use models::caller_fields::ProviderApi;
use provider_api::anthropic::count::count;
use provider_api::begin::{BegunAnswer, begin};
use provider_api::calls::{ApiCall, ApiHeaders};
use provider_api::models_list;
use provider_api::openai::responses_stored;

/// What a request of a provider's API gets.
pub enum ProviderAnswer {
    /// JSON.
    Whole(String),
    Turn(Box<BegunAnswer>),
}

/// Answers a request. `address`: the session that the address names.
pub async fn answer(
    agent: &Agent<'_>,
    call: &ApiCall,
    address: Option<&str>,
    headers: &ApiHeaders,
    body: Vec<u8>,
) -> Result<ProviderAnswer> {
    match call {
        ApiCall::Turn(api) => begin_turn(agent, *api, address, headers, body)
            .map(|begun| ProviderAnswer::Turn(Box::new(begun))),
        ApiCall::CountTokens => count(agent, headers, &body)
            .await
            .map(ProviderAnswer::Whole),
        ApiCall::Response(id) => {
            let address = address.map(parse_session_id).transpose()?;
            let found = responses_stored::get(agent, address.as_ref(), id).await;
            found.map(ProviderAnswer::Whole)
        }
        ApiCall::DeleteResponse(id) => {
            let address = address.map(parse_session_id).transpose()?;
            responses_stored::delete(agent, address.as_ref(), id).map(ProviderAnswer::Whole)
        }
        ApiCall::Models(family, name) => {
            models_list::answer(agent, *family, name.as_deref()).map(ProviderAnswer::Whole)
        }
    }
}

/// Begins a turn, or joins the one that the same request began.
pub fn begin_turn(
    agent: &Agent<'_>,
    api: ProviderApi,
    address: Option<&str>,
    headers: &ApiHeaders,
    body: Vec<u8>,
) -> Result<BegunAnswer> {
    let address = address.map(parse_session_id).transpose()?;
    begin(agent, api, address.as_ref(), headers, &body)
}
