//! The agent's client at an authorization server: one that the operator registered, one that a
//! document of the Worker describes, or one that the agent registers (RFC 7591).

use serde::Deserialize;

use crate::tools::mcp::oauth::documents::{ask, unusable};
use crate::tools::mcp::oauth::metadata::ServerMetadata;
use crate::tools::mcp::oauth::settings::{CLIENT_NAME, OAuthClient, OAuthSettings};
use crate::tools::mcp::oauth::stored::{
    Authorization, ClientCredential, ClientSecret, RegisteredClient,
};
use base::error::Result;
use base::json::{self, json};
use base::outbound::{Outbound, RequestForm};

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const NONE: &str = "none";

/// The longest id and secret that a registration may give.
const MAX_ID_BYTES: usize = 2_000;

/// The client for this authorization server, and whether the agent registered it. A client that was
/// registered there before is reused.
pub async fn get_client(
    outbound: &dyn Outbound,
    settings: &OAuthSettings,
    configured: &OAuthClient,
    known: &Authorization,
    server: &ServerMetadata,
) -> Result<(RegisteredClient, bool)> {
    let redirect_uri = settings.redirect_uri();
    let client = |id: String, credential| RegisteredClient {
        issuer: server.issuer.clone(),
        redirect_uri: redirect_uri.clone(),
        id,
        credential,
    };
    if let Some(id) = &configured.client_id {
        let secret = configured.secret_name().map(str::to_owned);
        let secret = secret.map(ClientSecret::Named);
        let credential = choose_credential(server, secret, None);
        return Ok((client(id.clone(), credential), false));
    }
    if server.client_id_metadata_document_supported
        && let Some(document) = settings.client_document()
    {
        return Ok((client(document, ClientCredential::Public), false));
    }
    let is_usable = |known: &&RegisteredClient| {
        known.issuer == server.issuer && known.redirect_uri == redirect_uri
    };
    if let Some(known) = known.client.as_ref().filter(is_usable) {
        return Ok((known.clone(), true));
    }
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(unusable(
            "the authorization server registers no clients by itself, so register one there and \
             define the server with `oauth.clientId`",
        ));
    };
    let registered = register(outbound, settings, server, endpoint).await?;
    let secret = registered.client_secret.map(ClientSecret::Issued);
    let method = registered.token_endpoint_auth_method;
    let credential = choose_credential(server, secret, method.as_deref());
    Ok((client(registered.client_id, credential), true))
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

async fn register(
    outbound: &dyn Outbound,
    settings: &OAuthSettings,
    server: &ServerMetadata,
    endpoint: &str,
) -> Result<Registered> {
    let described = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [settings.redirect_uri()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": choose_method(server, true),
        // Only a native client may redirect to this machine.
        "application_type": if settings.is_local() { "native" } else { "web" },
    });
    let received = ask(
        outbound,
        RequestForm::Json,
        endpoint,
        Vec::new(),
        json::text(&described),
    )
    .await?;
    let registered = received
        .is_success()
        .then(|| received.decode::<Registered>())
        .flatten();
    let fits = |registered: &Registered| {
        let secret = registered.client_secret.as_ref().map_or(0, String::len);
        (1..=MAX_ID_BYTES).contains(&registered.client_id.len()) && secret <= MAX_ID_BYTES
    };
    registered.filter(fits).ok_or_else(|| {
        unusable(&format!(
            "the authorization server did not register the client (status {})",
            received.status
        ))
    })
}

/// The first of our methods that the authorization server supports.
fn choose_method(server: &ServerMetadata, may_have_secret: bool) -> &'static str {
    let Some(supported) = &server.token_endpoint_auth_methods_supported else {
        // The default of the standard.
        return if may_have_secret { BASIC } else { NONE };
    };
    let methods: &[&'static str] = if may_have_secret {
        &[BASIC, POST, NONE]
    } else {
        &[NONE]
    };
    let mut found = methods
        .iter()
        .filter(|ours| supported.iter().any(|method| method == *ours));
    found.next().copied().unwrap_or(NONE)
}

/// `registered`: the method in the registration's answer.
fn choose_credential(
    server: &ServerMetadata,
    secret: Option<ClientSecret>,
    registered: Option<&str>,
) -> ClientCredential {
    let Some(secret) = secret else {
        return ClientCredential::Public;
    };
    match registered.unwrap_or_else(|| choose_method(server, true)) {
        BASIC => ClientCredential::Basic(secret),
        POST => ClientCredential::Post(secret),
        _ => ClientCredential::Public,
    }
}
