//! The providers' APIs over HTTP: see `provider_api`. A token that allows chat allows these turns,
//! too.

use super::session_address::parse_session_id;
use base::error::Result;
use chat::run::agent::Agent;
use provider_api::anthropic::count::count;
use provider_api::begin::StartedAnswer;
use provider_api::calls::{ApiCall, ApiHeaders};
use provider_api::models_list;
use provider_api::openai::responses_stored;
use provider_api::queue::begin_queued;

/// The answer to a request of a provider's API.
pub enum ProviderAnswer {
    /// JSON.
    Whole(String),
    Turn(Box<StartedAnswer>),
}

/// Answers a request. `address`: the session in the request's URL.
pub async fn answer(
    agent: &Agent<'_>,
    call: &ApiCall,
    address: Option<&str>,
    headers: &ApiHeaders,
    body: Vec<u8>,
) -> Result<ProviderAnswer> {
    match call {
        ApiCall::Turn(api) => {
            let address = address.map(parse_session_id).transpose()?;
            let started = begin_queued(agent, *api, address.as_ref(), headers, &body).await;
            started.map(|started| ProviderAnswer::Turn(Box::new(started)))
        }
        ApiCall::CountTokens => {
            let address = address.map(parse_session_id).transpose()?;
            let counted = count(agent, address.as_ref(), headers, &body).await;
            counted.map(ProviderAnswer::Whole)
        }
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
