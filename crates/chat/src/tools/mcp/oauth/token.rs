//! Requests to the token endpoint: a code for tokens, and a refresh token for new ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::address::tool_headers::find_secret;
use crate::tools::mcp::oauth::documents::{ask, encode_form, unusable};
use crate::tools::mcp::oauth::stored::{
    ClientCredential, ClientSecret, Grant, PendingAuthorization, RegisteredClient,
};
use base::error::{Error, Result};
use base::outbound::{Outbound, RequestForm};
use base::percent::encode_percent;

/// The longest token.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// A longer lifetime of a token is not believed, in seconds: ten years.
const MAX_SECONDS: i64 = 10 * 366 * 86_400;

/// Why there are no tokens.
pub enum TokenFailure {
    /// The authorization server refused: the person must authorize the agent again.
    Refused(Error),
    /// A retry may succeed.
    Failed(Error),
}

impl TokenFailure {
    pub fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Failed(error) => error,
        }
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    token_type: String,
    expires_in: Option<serde_json::Number>,
    refresh_token: Option<String>,
}

/// Exchanges the code that the person's browser brought.
pub async fn exchange_code(
    outbound: &dyn Outbound,
    pending: &PendingAuthorization,
    code: &str,
    now_ms: i64,
) -> Result<Grant> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", pending.client.redirect_uri.as_str()),
        ("code_verifier", pending.verifier.as_str()),
        ("resource", pending.resource.as_str()),
    ];
    let outcome = ask_for_tokens(
        outbound,
        &pending.client,
        (&pending.token_endpoint, &pending.resource),
        &fields,
        now_ms,
    );
    outcome.await.map_err(TokenFailure::into_error)
}

/// Gets new tokens. The refresh token stays unless it is replaced.
pub async fn refresh(
    outbound: &dyn Outbound,
    grant: &Grant,
    refresh_token: &str,
    now_ms: i64,
) -> Result<Grant, TokenFailure> {
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("resource", grant.resource.as_str()),
    ];
    let target = (grant.token_endpoint.as_str(), grant.resource.as_str());
    let mut issued = ask_for_tokens(outbound, &grant.client, target, &fields, now_ms).await?;
    let previous = || Some(refresh_token.to_owned());
    issued.refresh_token = issued.refresh_token.or_else(previous);
    Ok(issued)
}

async fn ask_for_tokens(
    outbound: &dyn Outbound,
    client: &RegisteredClient,
    (endpoint, resource): (&str, &str),
    fields: &[(&str, &str)],
    now_ms: i64,
) -> Result<Grant, TokenFailure> {
    let secret = match &client.credential {
        ClientCredential::Public => None,
        ClientCredential::Basic(secret) | ClientCredential::Post(secret) => Some(match secret {
            ClientSecret::Issued(secret) => secret.clone(),
            // Only the origin that `TOOL_SECRETS` names gets the secret.
            ClientSecret::Named(name) => {
                find_secret(outbound, name, Some(endpoint)).map_err(TokenFailure::Failed)?
            }
        }),
    };
    let secret = secret.as_deref().unwrap_or_default();
    let mut fields = fields.to_vec();
    let mut headers = Vec::new();
    match &client.credential {
        ClientCredential::Basic(_) => {
            let pair = format!("{}:{}", encode_percent(&client.id), encode_percent(secret));
            let value = format!("Basic {}", STANDARD.encode(pair));
            headers.push(("authorization".to_owned(), value));
        }
        ClientCredential::Post(_) => {
            fields.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
        }
        ClientCredential::Public => fields.push(("client_id", client.id.as_str())),
    }
    let body = encode_form(&fields);
    let received = ask(outbound, RequestForm::Form, endpoint, headers, body).await;
    let received = received.map_err(TokenFailure::Failed)?;
    if !received.is_success() {
        // The answer may repeat what was sent, so it is not in the error.
        let error = unusable(&format!(
            "the authorization server issued no token (status {})",
            received.status
        ));
        return Err(match received.status {
            400 | 401 | 403 => TokenFailure::Refused(error),
            _ => TokenFailure::Failed(error),
        });
    }
    let invalid =
        || TokenFailure::Failed(unusable("the authorization server issued no usable token"));
    let answer = received.decode::<TokenAnswer>().ok_or_else(invalid)?;
    let fits = |token: &str| {
        (1..=MAX_TOKEN_BYTES).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let is_usable = answer.token_type.eq_ignore_ascii_case("bearer")
        && fits(&answer.access_token)
        && answer.refresh_token.as_deref().is_none_or(fits);
    if !is_usable {
        return Err(invalid());
    }
    let seconds = answer.expires_in.and_then(|seconds| seconds.as_f64());
    let lifetime_ms = seconds.map(|seconds| (seconds as i64).clamp(0, MAX_SECONDS) * 1_000);
    Ok(Grant {
        client: client.clone(),
        access_token: answer.access_token,
        refresh_token: answer.refresh_token,
        expires_at: lifetime_ms.map(|lifetime_ms| now_ms.saturating_add(lifetime_ms)),
        resource: resource.to_owned(),
        token_endpoint: endpoint.to_owned(),
    })
}
