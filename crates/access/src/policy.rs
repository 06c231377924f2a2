//! How this Worker is configured to let callers in.

use hmac::Mac;

use super::token::{Secret, mac};
use base::error::{Code, Error};

/// How this Worker is configured to let callers in.
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
    /// The secret is so short that it could be guessed: nobody gets in, with any `AUTH`.
    TooShort,
    Secret(Secret),
}

/// The setting `SESSION_AGENT_TOKEN_PREVIOUS`: while a secret is replaced, the older one still
/// holds. It opens what the secret opens, and signs nothing new.
#[derive(Clone, Default)]
pub enum PreviousSecret {
    #[default]
    Nothing,
    /// Nobody gets in: it is too short for a secret, or stands alone.
    Wrong(&'static str),
    Secret(Secret),
}

/// The setting `AUTH`: the callers that get in if there is no secret. A secret overrides
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// Nobody gets in.
    #[default]
    Secret,
    /// Everybody who reaches the Worker gets in: for a Worker that only bindings reach.
    Open,
    /// Every program on this machine gets in. Pages of other sites do not.
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

    /// The same policy, while the secret `previous` still holds beside the new one.
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

    /// The secrets that hold: the one that signs, then the one that it replaces.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let previous = match &self.previous {
            PreviousSecret::Secret(previous) => Some(previous),
            PreviousSecret::Nothing | PreviousSecret::Wrong(_) => None,
        };
        self.secret().into_iter().chain(previous)
    }

    /// The seal of a state that a client carries for an object: by the secret, or by a key of
    /// the object's life where the Worker has no secret.
    pub fn seal_state(&self, life: &[u8; 32], content: &str) -> [u8; 32] {
        let key = self.secret().map_or(life, Secret::state_key);
        mac(key, content).finalize().into_bytes().into()
    }

    /// Whether this is the seal of the state. The comparison takes constant time.
    pub fn has_sealed_state(&self, life: &[u8; 32], content: &str, seal: &[u8]) -> bool {
        let is_of = |key: &[u8]| mac(key, content).verify_slice(seal).is_ok();
        match self.secret() {
            Some(_) => self.secrets().any(|secret| is_of(secret.state_key())),
            None => is_of(life),
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
