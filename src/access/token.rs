//! Scoped tokens: claims in the open, sealed with HMAC-SHA-256 under the secret.
//!
//! `sa1.<claims as JSON, base64url>.<seal, base64url>`. The seal covers the
//! prefix too, so that a later format can't be mistaken for this one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::scope::Scope;

/// The longest that a token may live: a day.
pub const MAX_TOKEN_SECONDS: i64 = 86_400;

const PREFIX: &str = "sa1";

/// The longest token there is: what an address holds at most on Cloudflare, and a
/// page can only bring it there. All operations named are under 2 KiB of it.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    pub agent: String,
    #[serde(flatten)]
    pub scope: Scope,
}

pub fn mint(secret: &str, claims: &Claims) -> String {
    let claims = serde_json::to_string(claims).unwrap_or_default();
    let sealed = format!("{PREFIX}.{}", URL_SAFE_NO_PAD.encode(claims));
    let seal = seal(secret, &sealed).finalize().into_bytes();
    format!("{sealed}.{}", URL_SAFE_NO_PAD.encode(seal))
}

/// The token's claims, or a sentence that says why it doesn't count.
pub fn verify(secret: &str, token: &str, now_ms: i64) -> Result<Claims, &'static str> {
    const NO_TOKEN: &str =
        "The bearer token is neither the Worker's secret nor a token that it minted.";
    if token.len() > MAX_TOKEN_BYTES {
        return Err(NO_TOKEN);
    }
    let (sealed, given) = token.rsplit_once('.').ok_or(NO_TOKEN)?;
    let given = URL_SAFE_NO_PAD.decode(given).map_err(|_| NO_TOKEN)?;
    seal(secret, sealed)
        .verify_slice(&given)
        .map_err(|_| NO_TOKEN)?;
    // What follows was written by us.
    let claims = sealed
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix('.'))
        .and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok())
        .and_then(|claims| serde_json::from_slice::<Claims>(&claims).ok())
        .ok_or(NO_TOKEN)?;
    if claims.scope.expires_at <= now_ms {
        return Err("This token has expired; have another minted.");
    }
    Ok(claims)
}

/// Whether this looks like a token of ours.
pub fn is_token(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Compares digests, so that time tells neither the secret's bytes nor its length.
pub fn is_same_secret(secret: &str, given: &str) -> bool {
    const PURPOSE: &str = "session-agent secret";
    let given = seal(given, PURPOSE).finalize().into_bytes();
    seal(secret, PURPOSE).verify_slice(&given).is_ok()
}

#[allow(clippy::expect_used)]
fn seal(key: &str, text: &str) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac
}
