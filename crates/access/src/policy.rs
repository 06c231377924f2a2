//! The Worker's configuration for authentication.

use hmac::Mac;

use super::token::{Secret, mac};
use base::error::{Code, Error};

/// The Worker's configuration for authentication.
#[derive(Clone, Default)]
pub struct Policy {
    pub(super) secret: ConfiguredSecret,
    pub(super) previous: PreviousSecret,
    pub(super) auth: Auth,
    /// `ALLOWED_ORIGINS`: the origins whose pages may read answers.
    pub(super) origins: Vec<String>,
}

/// The setting `SESSION_AGENT_TOKEN`.
#[derive(Clone, Default)]
pub enum ConfiguredSecret {
    #[default]
    Nothing,
    /// The secret is too short to be safe: every request is refused, with any `AUTH`.
    TooShort,
    Secret(Secret),
}

/// The setting `SESSION_AGENT_TOKEN_PREVIOUS`: the older secret, which stays valid while it
/// is replaced. It grants the same access as the secret, but signs nothing new.
#[derive(Clone, Default)]
pub enum PreviousSecret {
    #[default]
    Nothing,
    /// Every request is refused: it is too short for a secret, or set without
    /// `SESSION_AGENT_TOKEN`.
    Wrong(&'static str),
    Secret(Secret),
}

/// The setting `AUTH`: which callers are allowed if there is no secret. A secret overrides
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// No caller is allowed.
    #[default]
    Secret,
    /// Everyone who reaches the Worker is allowed: for a Worker that only bindings reach.
    Open,
    /// Every program on this machine is allowed. Pages of other sites are not.
    Local,
}

pub fn unauthorized(message: impl Into<String>) -> Error {
    Error::new(Code::Unauthorized, message)
}

pub fn forbidden(message: impl Into<String>) -> Error {
    Error::new(Code::Forbidden, message)
}

impl Policy {
    pub fn new(secret: Option<String>, auth: Option<&str>) -> Self {
        let secret = match secret.map(Secret::new) {
            None => ConfiguredSecret::Nothing,
            Some(None) => ConfiguredSecret::TooShort,
            Some(Some(secret)) => ConfiguredSecret::Secret(secret),
        };
        let auth = match auth {
            Some("open") => Auth::Open,
            Some("local") => Auth::Local,
            _ => Auth::Secret,
        };
        Self {
            secret,
            previous: PreviousSecret::Nothing,
            auth,
            origins: Vec::new(),
        }
    }

    /// The same policy, with `previous` as a second valid secret.
    #[must_use]
    pub fn with_previous(mut self, previous: Option<String>) -> Self {
        self.previous = match (previous.map(Secret::new), &self.secret) {
            (None, _) => PreviousSecret::Nothing,
            (Some(None), _) => PreviousSecret::Wrong(
                "SESSION_AGENT_TOKEN_PREVIOUS is too short for a secret and could be guessed, so \
                 this Worker refuses all requests. Set it to the secret that you replace, or \
                 remove it: `npx wrangler secret delete SESSION_AGENT_TOKEN_PREVIOUS`.",
            ),
            (Some(_), ConfiguredSecret::Nothing) => PreviousSecret::Wrong(
                "SESSION_AGENT_TOKEN_PREVIOUS is set and SESSION_AGENT_TOKEN is not, so this \
                 Worker refuses all requests. Set the new secret with `npx wrangler secret put \
                 SESSION_AGENT_TOKEN`.",
            ),
            (Some(Some(previous)), _) => PreviousSecret::Secret(previous),
        };
        self
    }

    /// The valid secrets: the one that signs, then the one that it replaces.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let previous = match &self.previous {
            PreviousSecret::Secret(previous) => Some(previous),
            PreviousSecret::Nothing | PreviousSecret::Wrong(_) => None,
        };
        self.secret().into_iter().chain(previous)
    }

    /// The signature of an object's state that a client stores. It is made with the secret,
    /// or, if the Worker has none, with a key of the object's current activation.
    pub fn seal_state(&self, activation_key: &[u8; 32], content: &str) -> [u8; 32] {
        let key = self.secret().map_or(activation_key, Secret::state_key);
        mac(key, content).finalize().into_bytes().into()
    }

    /// Whether this is the state's signature. The comparison takes constant time.
    pub fn has_sealed_state(&self, activation_key: &[u8; 32], content: &str, seal: &[u8]) -> bool {
        let is_of = |key: &[u8]| mac(key, content).verify_slice(seal).is_ok();
        match self.secret() {
            Some(_) => self.secrets().any(|secret| is_of(secret.state_key())),
            None => is_of(activation_key),
        }
    }

    /// The secret that signs tokens.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.secret {
            ConfiguredSecret::Secret(secret) => Some(secret),
            ConfiguredSecret::Nothing | ConfiguredSecret::TooShort => None,
        }
    }
}
