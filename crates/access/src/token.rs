//! The secret, and the tokens that it signs. A token contains readable claims and an
//! HMAC-SHA-256 signature: `sa2.<claims as JSON, base64url>.<signature, base64url>`.
//!
//! The key is derived from the secret and from the key's purpose, so that a signature made
//! for another purpose is not valid here. The signature covers the prefix, too, so that a
//! token of a later format can't be mistaken for this format.

use base::json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::scope::TokenScope;

/// The minimum length of a secret. The holder of a token can test guesses of the secret
/// offline. 32 characters of `openssl rand -hex` are 128 bits.
pub const MIN_SECRET_CHARS: usize = 32;

/// The longest lifetime of a token: a day.
pub const MAX_TOKEN_SECONDS: i64 = 86_400;

const PREFIX: &str = "sa2";

/// The error for a bearer token that no secret matches.
pub const NO_TOKEN: &str =
    "The bearer token is neither the Worker's secret nor a token that it minted.";

/// The longest token: a page may have to send its token in the URL, which Cloudflare limits
/// to this length. A list of all operations takes less than 2 KiB.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    pub agent: String,
    #[serde(flatten)]
    pub scope: TokenScope,
}

/// The setting `SESSION_AGENT_TOKEN`, long enough to be a secret.
#[derive(Clone)]
pub struct Secret {
    text: String,
    signing_key: [u8; 32],
    callback_key: [u8; 32],
    delivery_key: [u8; 32],
    receipt_key: [u8; 32],
    state_key: [u8; 32],
}

impl Secret {
    /// `None`: the text is too short for a secret.
    pub fn new(text: String) -> Option<Self> {
        if text.chars().count() < MIN_SECRET_CHARS {
            return None;
        }
        let key_for = |purpose: &str| derive_key(&text, purpose);
        Some(Self {
            signing_key: key_for("session-agent token signing key 2"),
            callback_key: key_for("session-agent callback signing key 1"),
            delivery_key: key_for("session-agent delivery key 1"),
            receipt_key: key_for("session-agent receipt signing key 1"),
            state_key: key_for("session-agent state signing key 1"),
            text,
        })
    }

    /// Whether `given` is the secret. Digests are compared, so that the time reveals
    /// neither the secret's bytes nor its length.
    pub fn is(&self, given: &str) -> bool {
        const PURPOSE: &str = "session-agent secret";
        let given = mac(given.as_bytes(), PURPOSE).finalize().into_bytes();
        mac(self.text.as_bytes(), PURPOSE)
            .verify_slice(&given)
            .is_ok()
    }

    /// The signature of a callback. Its key is derived from the secret, so that the
    /// receiver can verify it without having the secret.
    pub fn sign_callback(&self, content: &str) -> [u8; 32] {
        mac(&self.callback_key, content)
            .finalize()
            .into_bytes()
            .into()
    }

    /// The signature of a delivery's id, by which the id is recognized.
    pub fn seal_delivery(&self, content: &str) -> [u8; 32] {
        mac(&self.delivery_key, content)
            .finalize()
            .into_bytes()
            .into()
    }

    /// The key for signing an object's state that a client stores.
    pub(super) fn state_key(&self) -> &[u8; 32] {
        &self.state_key
    }

    /// The key by which an object recognizes the Worker in front.
    pub(super) fn front_key(&self) -> [u8; 32] {
        derive_key(&self.text, "session-agent front signing key 1")
    }

    /// The signature of a receipt's digest.
    pub fn seal_receipt(&self, digest: &str) -> [u8; 32] {
        mac(&self.receipt_key, digest)
            .finalize()
            .into_bytes()
            .into()
    }

    /// Whether this is the digest's signature. The comparison takes constant time.
    pub fn has_sealed_receipt(&self, digest: &str, seal: &[u8]) -> bool {
        mac(&self.receipt_key, digest).verify_slice(seal).is_ok()
    }

    pub fn mint(&self, claims: &Claims) -> String {
        let claims = json::encode(claims).unwrap_or_default();
        let sealed = format!("{PREFIX}.{}", URL_SAFE_NO_PAD.encode(claims));
        let seal = mac(&self.signing_key, &sealed).finalize().into_bytes();
        format!("{sealed}.{}", URL_SAFE_NO_PAD.encode(seal))
    }

    /// The claims of a token that this secret signed, even if it has expired.
    pub fn claims(&self, token: &str) -> Option<Claims> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (sealed, given) = token.rsplit_once('.')?;
        let given = URL_SAFE_NO_PAD.decode(given).ok()?;
        mac(&self.signing_key, sealed).verify_slice(&given).ok()?;
        // The signature is valid, so this Worker wrote the rest.
        let claims = sealed.strip_prefix(PREFIX)?.strip_prefix('.')?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        json::decode_bytes(&claims).ok()
    }
}

/// Whether this text looks like a token of this Worker.
pub fn is_token(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// The key for this purpose.
pub(super) fn derive_key(secret: &str, purpose: &str) -> [u8; 32] {
    mac(secret.as_bytes(), purpose)
        .finalize()
        .into_bytes()
        .into()
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
pub(super) fn mac(key: &[u8], text: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    mac
}
