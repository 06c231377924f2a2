//! The secret, and what it signs. A token is claims in the open, sealed with
//! HMAC-SHA-256: `sa2.<claims as JSON, base64url>.<seal, base64url>`.
//!
//! The key is derived from the secret and says what it is for, so that no seal of
//! another kind is taken for one of these. The seal covers the prefix too, so that
//! a later format can't be mistaken for this one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::scope::TokenScope;

/// The fewest characters of a secret. Whoever holds a token can try secrets on it
/// without asking anybody: 32 characters of `openssl rand -hex` are 128 bits.
pub const MIN_SECRET_CHARS: usize = 32;

/// The longest that a token may live: a day.
pub const MAX_TOKEN_SECONDS: i64 = 86_400;

const PREFIX: &str = "sa2";

/// The longest token there is: what an address holds at most on Cloudflare, and a
/// page can only bring it there. All operations named are under 2 KiB of it.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    pub agent: String,
    #[serde(flatten)]
    pub scope: TokenScope,
}

/// `SESSION_AGENT_TOKEN`, long enough.
#[derive(Clone)]
pub struct Secret {
    text: String,
    signing_key: [u8; 32],
}

impl Secret {
    /// `None`: it is too short to be one.
    pub fn new(text: String) -> Option<Self> {
        if text.chars().count() < MIN_SECRET_CHARS {
            return None;
        }
        let signing_key = mac(text.as_bytes(), "session-agent token signing key 2");
        Some(Self {
            signing_key: signing_key.finalize().into_bytes().into(),
            text,
        })
    }

    /// Whether this is the secret. Compares digests, so that time tells neither the
    /// secret's bytes nor its length.
    pub fn is(&self, given: &str) -> bool {
        const PURPOSE: &str = "session-agent secret";
        let given = mac(given.as_bytes(), PURPOSE).finalize().into_bytes();
        mac(self.text.as_bytes(), PURPOSE)
            .verify_slice(&given)
            .is_ok()
    }

    pub fn mint(&self, claims: &Claims) -> String {
        let claims = serde_json::to_string(claims).unwrap_or_default();
        let sealed = format!("{PREFIX}.{}", URL_SAFE_NO_PAD.encode(claims));
        let seal = mac(&self.signing_key, &sealed).finalize().into_bytes();
        format!("{sealed}.{}", URL_SAFE_NO_PAD.encode(seal))
    }

    /// The token's claims, or a sentence that says why it doesn't count.
    pub fn verify(&self, token: &str, now_ms: i64) -> Result<Claims, &'static str> {
        const NO_TOKEN: &str =
            "The bearer token is neither the Worker's secret nor a token that it minted.";
        if token.len() > MAX_TOKEN_BYTES {
            return Err(NO_TOKEN);
        }
        let (sealed, given) = token.rsplit_once('.').ok_or(NO_TOKEN)?;
        let given = URL_SAFE_NO_PAD.decode(given).map_err(|_| NO_TOKEN)?;
        mac(&self.signing_key, sealed)
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
}

/// Whether this looks like a token of ours.
pub fn is_token(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.starts_with('.'))
}

#[allow(clippy::expect_used)]
fn mac(key: &[u8], text: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac
}
