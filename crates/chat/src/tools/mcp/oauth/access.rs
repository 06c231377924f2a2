//! Requests to a tool server with a person's OAuth token. The token is renewed shortly
//! before it expires, or when the server refuses it. Only one request renews it at a time.

use crate::address::tool_address::ToolAddress;
use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::mcp::client::ServerClient;
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::oauth::documents::unusable;
use crate::tools::mcp::oauth::settings::OAuthSettings;
use crate::tools::mcp::oauth::stored::{Authorization, find_authorization, write_authorization};
use crate::tools::mcp::oauth::token::{TokenFailure, refresh};
use base::error::{Error, Result};
use base::outbound::Outbound;
use memory::Memory;

/// How long before its expiry a token is renewed.
const RENEWAL_MARGIN_MS: i64 = 60_000;

/// A server, as its authorization is stored.
#[derive(Clone, Copy)]
pub struct AuthorizedServer<'a> {
    pub name: &'a str,
    pub at: &'a ToolAddress,
}

/// The URL at which OAuth may be used. `None` if the server has no URL, or if the operator
/// configured another credential.
pub fn find_url<'a>(at: &'a ToolAddress, headers: &ResolvedHeaders) -> Option<&'a str> {
    at.url().filter(|_| !headers.has_credential())
}

/// Whether a person may authorize the agent at this server. This also requires a configured
/// deployment.
pub fn may_be_authorized(
    outbound: &dyn Outbound,
    at: &ToolAddress,
    headers: &ResolvedHeaders,
) -> bool {
    find_url(at, headers).is_some() && OAuthSettings::read(outbound).is_ok()
}

/// Runs `work` with the person's token, if there is one. If the server refuses the token,
/// renews it and runs `work` once more. That is safe, because the server did not carry out
/// the refused request.
pub async fn with_token<T>(
    memory: &Memory<'_>,
    server: AuthorizedServer<'_>,
    client: &mut ServerClient<'_>,
    mut work: impl AsyncFnMut(&mut ServerClient<'_>) -> Result<T, ServerFailure>,
) -> Result<T, ServerFailure> {
    let (Some(url), Ok(settings)) = (
        find_url(server.at, &client.headers),
        OAuthSettings::read(memory.outbound),
    ) else {
        return work(client).await;
    };
    let address = (server.name, url);
    let found = find_token(memory, &settings, address, None).await;
    let Some(token) = found.map_err(|_| ServerFailure::NoToken)? else {
        return work(client).await;
    };
    let bare = std::mem::take(&mut client.headers);
    client.headers = bare.with_token(&token);
    let outcome = work(client).await;
    match &outcome {
        Err(ServerFailure::Unauthorized(challenge)) if !challenge.wants_more_scope() => {}
        _ => return outcome,
    }
    let renewed = find_token(memory, &settings, address, Some(&token)).await;
    match renewed {
        Ok(Some(renewed)) if renewed != token => {
            let used = std::mem::take(&mut client.headers);
            client.headers = used.with_token(&renewed);
            work(client).await
        }
        Ok(_) => outcome,
        Err(_) => Err(ServerFailure::NoToken),
    }
}

/// The token for a server. `refused` is a token that the server no longer accepts. `None`:
/// the person must authorize the agent.
async fn find_token(
    memory: &Memory<'_>,
    settings: &OAuthSettings,
    (server, url): (&str, &str),
    refused: Option<&str>,
) -> Result<Option<String>> {
    let now_ms = memory.host.now_ms();
    let find = || find_authorization(memory, settings, server, url);
    let usable = |found: &Option<Authorization>| {
        let grant = found.as_ref()?.grant.as_ref()?;
        let is_fresh = grant
            .expires_at
            .is_none_or(|at| now_ms < at - RENEWAL_MARGIN_MS);
        let is_refused = refused == Some(grant.access_token.as_str());
        (is_fresh && !is_refused).then(|| grant.access_token.clone())
    };
    let found = find()?;
    if usable(&found).is_some() || found.as_ref().is_none_or(|found| found.grant.is_none()) {
        return Ok(usable(&found));
    }
    let lock_name = format!("authorization {server}");
    let lock = memory.outbound.writers().enter(&lock_name, 0).await;
    let _lock = lock.map_err(|_| overloaded())?;
    // Another request may have renewed the token in the meantime.
    let found = find()?;
    if let Some(token) = usable(&found) {
        return Ok(Some(token));
    }
    let Some(grant) = found.and_then(|found| found.grant) else {
        return Ok(None);
    };
    let Some(refresh_token) = &grant.refresh_token else {
        // Without a refresh token, an old token is used until the server refuses it.
        let token = grant.access_token.clone();
        return Ok((refused != Some(token.as_str())).then_some(token));
    };
    let outcome = refresh(memory.outbound, &grant, refresh_token, now_ms).await;
    // The server may have been removed or authorized again in the meantime.
    let is_the_same = |present: &Authorization| {
        let present = present.grant.as_ref();
        present.is_some_and(|present| present.access_token == grant.access_token)
    };
    let present = find()?;
    let Some(mut authorization) = present.clone().filter(is_the_same) else {
        return Ok(usable(&present));
    };
    match outcome {
        Ok(issued) => {
            let token = issued.access_token.clone();
            authorization.grant = Some(issued);
            write_authorization(memory, settings, server, &authorization)?;
            Ok(Some(token))
        }
        Err(TokenFailure::Refused(_)) => {
            authorization.grant = None;
            write_authorization(memory, settings, server, &authorization)?;
            Ok(None)
        }
        Err(TokenFailure::Failed(error)) => Err(error),
    }
}

fn overloaded() -> Error {
    unusable("too many calls of this agent are in progress")
}
