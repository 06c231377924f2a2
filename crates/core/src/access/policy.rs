//! How this Worker is configured to let callers in.

use super::token::Secret;
use crate::base::error::{Code, Error};

/// How this Worker is configured to let callers in.
#[derive(Clone, Default)]
pub struct Policy {
    pub(super) secret: ConfiguredSecret,
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
            auth,
            origins: Vec::new(),
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
