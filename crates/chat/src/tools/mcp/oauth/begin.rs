//! Begins an authorization: discovers the authorization server, and builds the address that a
//! person opens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::address::tool_address::ToolAddress;
use crate::tools::mcp::oauth::client::get_client;
use crate::tools::mcp::oauth::documents::encode_form;
use crate::tools::mcp::oauth::metadata::{ResourceMetadata, ServerMetadata, discover};
use crate::tools::mcp::oauth::settings::OAuthSettings;
use crate::tools::mcp::oauth::stored::{
    PendingAuthorization, find_authorization, write_authorization,
};
use crate::tools::mcp::server::ToolServer;
use base::error::{Error, Result};
use base::host::Host;
use base::json;
use memory::Memory;

/// How long a person has to return.
pub const PENDING_MS: i64 = 10 * 60_000;

/// Bytes of the state's random part and of the verifier of PKCE: 256 bits.
const RANDOM_BYTES: usize = 32;

/// The scope that requests a refresh token.
const OFFLINE: &str = "offline_access";

/// The most bytes of the requested scopes.
const MAX_SCOPE_BYTES: usize = 4 << 10;

/// An authorization that can be stored, and the address that the person opens.
pub struct StartedAuthorization {
    pub url: String,
    pub expires_at: i64,
    server_url: String,
    pending: PendingAuthorization,
    /// Whether the agent registered the client itself, and reuses it.
    is_registered: bool,
    scope: Option<String>,
}

/// Discovers the server's authorization and builds its address. Stores nothing.
pub async fn begin(memory: &Memory<'_>, server: &ToolServer) -> Result<StartedAuthorization> {
    let ToolAddress::Url(url) = &server.at else {
        return Err(Error::invalid(
            "mcp",
            "A server behind a service binding can't be authorized: it has no address that \
             metadata could describe. Give it a header.",
        ));
    };
    let settings = OAuthSettings::read(memory.outbound)?;
    let challenge = server.state.needs_authorization.clone().unwrap_or_default();
    let known = find_authorization(memory, &settings, &server.name, url)?.unwrap_or_default();
    let (resource, at) = discover(memory.outbound, url, &challenge).await?;
    let (client, is_registered) =
        get_client(memory.outbound, &settings, &server.state.oauth, &known, &at).await?;
    let configured = server.state.oauth.scopes.as_ref();
    let wanted = configured.map(|scopes| scopes.join(" "));
    let wanted = wanted.or_else(|| challenge.scope.clone());
    let before = known.scope.filter(|_| challenge.wants_more_scope());
    let scope = choose_scope(before, wanted, &resource, &at);
    let expires_at = memory.host.now_ms() + PENDING_MS;
    let verifier = random(memory.host);
    let state = State::begin(&settings, memory.host, memory.agent, &server.name)?;
    let nonce = state.nonce.clone();
    let challenge_of_verifier = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let state = state.to_text();
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("redirect_uri", client.redirect_uri.as_str()),
        ("state", state.as_str()),
        ("code_challenge", challenge_of_verifier.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", resource.resource.as_str()),
    ];
    fields.extend(scope.as_deref().map(|scope| ("scope", scope)));
    // Without this, some authorization servers issue no refresh token for that scope.
    let is_offline = scope.as_deref().is_some_and(|scope| has(scope, OFFLINE));
    fields.extend(is_offline.then_some(("prompt", "consent")));
    let endpoint = &at.authorization_endpoint;
    let mark = if endpoint.contains('?') { '&' } else { '?' };
    let url_to_open = format!("{endpoint}{mark}{}", encode_form(&fields));
    Ok(StartedAuthorization {
        url: url_to_open,
        expires_at,
        server_url: url.clone(),
        pending: PendingAuthorization {
            client,
            nonce,
            verifier,
            resource: resource.resource,
            token_endpoint: at.token_endpoint,
            names_issuer: at.authorization_response_iss_parameter_supported,
            expires_at,
        },
        is_registered,
        scope,
    })
}

impl StartedAuthorization {
    /// Stores the authorization until the person returns, replacing one that began before.
    pub fn store(&self, memory: &Memory<'_>, server: &str) -> Result<()> {
        let settings = OAuthSettings::read(memory.outbound)?;
        let known = find_authorization(memory, &settings, server, &self.server_url)?;
        let mut authorization = known.unwrap_or_default();
        authorization.url.clone_from(&self.server_url);
        authorization.pending = Some(self.pending.clone());
        authorization.scope.clone_from(&self.scope);
        if self.is_registered {
            authorization.client = Some(self.pending.client.clone());
        }
        write_authorization(memory, &settings, server, &authorization)
    }
}

/// The scopes to request. `before`: those of the previous request, if more are needed now.
fn choose_scope(
    before: Option<String>,
    wanted: Option<String>,
    resource: &ResourceMetadata,
    server: &ServerMetadata,
) -> Option<String> {
    let supported = || {
        resource
            .scopes_supported
            .as_ref()
            .map(|scopes| scopes.join(" "))
    };
    let wanted = wanted.or_else(supported)?;
    let offline = server.scopes_supported.iter().any(|scope| scope == OFFLINE);
    let before = before.unwrap_or_default();
    let all = before.split(' ').chain(wanted.split(' '));
    let all = all.chain(offline.then_some(OFFLINE));
    let mut chosen = String::new();
    for scope in all.filter(|scope| !scope.is_empty()) {
        if has(&chosen, scope) || chosen.len() + scope.len() >= MAX_SCOPE_BYTES {
            continue;
        }
        if !chosen.is_empty() {
            chosen.push(' ');
        }
        chosen.push_str(scope);
    }
    (!chosen.is_empty()).then_some(chosen)
}

fn has(scopes: &str, scope: &str) -> bool {
    scopes.split(' ').any(|known| known == scope)
}

fn random(host: &dyn Host) -> String {
    let mut bytes = [0; RANDOM_BYTES];
    host.fill_random(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The state in the redirect: the agent and the server, and the proof that the agent began the authorization.
/// The nonce is sealed with the deployment's key, so the Worker refuses a state that anyone else
/// made up before it wakes the agent.
#[derive(Debug, PartialEq)]
pub struct State {
    pub agent: String,
    pub server: String,
    pub nonce: String,
}

impl State {
    fn begin(settings: &OAuthSettings, host: &dyn Host, agent: &str, server: &str) -> Result<Self> {
        let nonce = settings
            .key
            .seal(host, &nonce_context(agent, server), &random(host));
        let nonce = nonce.ok_or_else(|| Error::storage("a state could not be sealed"))?;
        Ok(Self {
            agent: agent.to_owned(),
            server: server.to_owned(),
            nonce,
        })
    }

    fn to_text(&self) -> String {
        let parts = json::json!([self.agent, self.server, self.nonce]);
        URL_SAFE_NO_PAD.encode(json::text(&parts))
    }

    /// `None`: no agent made this text.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (agent, server, nonce) = json::decode_bytes(&bytes).ok()?;
        Some(Self {
            agent,
            server,
            nonce,
        })
    }
}

fn nonce_context(agent: &str, server: &str) -> String {
    json::text(&json::json!(["state", agent, server]))
}

/// Whether this deployment created the nonce for this agent and server.
pub fn is_own_nonce(settings: &OAuthSettings, agent: &str, server: &str, nonce: &str) -> bool {
    let context = nonce_context(agent, server);
    settings.key.open(&context, nonce).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_read_from_an_oauth_state() {
        let state = State {
            agent: "user:42/a \"b\"".to_owned(),
            server: "wiki".to_owned(),
            nonce: "n".to_owned(),
        };
        assert_eq!(State::read(&state.to_text()), Some(state));
        for nonsense in ["", "x", "W10", "bnVsbA"] {
            assert_eq!(State::read(nonsense), None, "{nonsense}");
        }
    }
}
