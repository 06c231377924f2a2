//! An authorization as it is stored: one encrypted text for each server.

use serde::{Deserialize, Serialize};

use crate::tables::TOOL_AUTHORIZATIONS;
use crate::tools::mcp::oauth::settings::OAuthSettings;
use base::columns::find_value;
use base::database::{Database, Delete};
use base::error::{Error, Result};
use base::json;
use memory::Memory;

/// All that is known of an authorization. It contains secrets: never show or log it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Authorization {
    /// The server's address. An authorization for another address is ignored.
    pub url: String,
    /// The client that the agent registered.
    pub client: Option<RegisteredClient>,
    pub pending: Option<PendingAuthorization>,
    pub grant: Option<Grant>,
    /// All scopes that were requested.
    pub scope: Option<String>,
}

/// The agent's client at an authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub struct RegisteredClient {
    /// The authorization server. The client is unknown to any other.
    pub issuer: String,
    pub redirect_uri: String,
    pub id: String,
    pub credential: ClientCredential,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum ClientCredential {
    /// The client has no secret.
    #[default]
    Public,
    /// The secret is in the header `authorization`.
    Basic(ClientSecret),
    /// The secret is in the form.
    Post(ClientSecret),
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum ClientSecret {
    /// The authorization server gave it at the registration.
    Issued(String),
    /// The name of a secret of the Worker, which is looked up for each request.
    Named(String),
}

/// An authorization whose person has not returned yet.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingAuthorization {
    pub client: RegisteredClient,
    /// The random part of the state.
    pub nonce: String,
    pub verifier: String,
    pub resource: String,
    pub token_endpoint: String,
    /// Whether the answer must name the issuer.
    pub names_issuer: bool,
    pub expires_at: i64,
}

/// The tokens that a person allowed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Grant {
    /// The client that the tokens were issued to.
    pub client: RegisteredClient,
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// In milliseconds since the epoch. `None`: the authorization server did not specify it.
    pub expires_at: Option<i64>,
    pub resource: String,
    pub token_endpoint: String,
}

/// The context that an encrypted text is bound to.
fn context(agent: &str, server: &str) -> String {
    json::text(&json::json!([agent, server]))
}

/// The authorization for a server at this address. `None`: there is none, it is for another
/// address, or it was stored with another key.
pub fn find_authorization(
    memory: &Memory<'_>,
    settings: &OAuthSettings,
    server: &str,
    url: &str,
) -> Result<Option<Authorization>> {
    let sql = "SELECT sealed FROM cf_agents_tool_authorizations WHERE server = ?1";
    let sealed: Option<String> = find_value(memory.db, sql, &[server.into()])?;
    let opened =
        sealed.and_then(|sealed| settings.key.open(&context(memory.agent, server), &sealed));
    let read = opened.and_then(|text| json::decode::<Authorization>(&text).ok());
    Ok(read.filter(|authorization| authorization.url == url))
}

pub fn write_authorization(
    memory: &Memory<'_>,
    settings: &OAuthSettings,
    server: &str,
    authorization: &Authorization,
) -> Result<()> {
    let text = json::encode(authorization)?;
    let sealed = settings
        .key
        .seal(memory.host, &context(memory.agent, server), &text);
    let sealed = sealed.ok_or_else(|| Error::storage("an authorization could not be encrypted"))?;
    memory.db.run(
        "INSERT INTO cf_agents_tool_authorizations (server, sealed, updated_at)
         VALUES (?1, ?2, ?3)
             ON CONFLICT (server) DO UPDATE
            SET sealed = excluded.sealed,
                updated_at = excluded.updated_at",
        &[
            server.into(),
            sealed.as_str().into(),
            memory.host.now_ms().into(),
        ],
    )
}

/// How many servers have an authorization.
pub fn count_authorizations(db: &dyn Database) -> Result<i64> {
    let sql = "SELECT count(*) FROM cf_agents_tool_authorizations";
    Ok(find_value(db, sql, &[])?.unwrap_or(0))
}

/// Deletes the authorization for a server. Part of a transaction.
pub fn delete_authorization(db: &dyn Database, server: &str) -> Result<()> {
    Delete::from(TOOL_AUTHORIZATIONS, "server = ?1", &[server.into()])
        .run(db)
        .map(drop)
}
