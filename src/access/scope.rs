//! Whom a request speaks for, and what a minted token lets its holder do.

use serde::{Deserialize, Serialize};

use crate::base::ids::Id;
use crate::base::json::list;

/// Names that one list of an [`Allow`] holds.
pub const MAX_ALLOWED_NAMES: usize = 32;

/// Whom a request speaks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// The holder of the secret, or anybody where the Worker is open.
    Owner,
    /// The holder of a minted token.
    Scoped(TokenScope),
}

/// What a minted token allows. Kept in the token, and with a socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenScope {
    /// This session and no other. `None`: all of the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// These operations and no other. `None`: all that need neither the secret nor
    /// to be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Allow::is_nothing")]
    pub allow: Allow,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

/// What a token allows beyond its operations. Everything is off until it is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// Models that a turn may name, as `configureAgent` takes them.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_ALLOWED_NAMES>"
    )]
    #[cfg_attr(test, schemars(length(max = MAX_ALLOWED_NAMES)))]
    pub models: Vec<Id>,
    /// To add system instructions to a turn.
    #[serde(skip_serializing_if = "is_off")]
    pub system_instructions: bool,
    /// To bring tools of the client's own to a turn.
    #[serde(skip_serializing_if = "is_off")]
    pub client_tools: bool,
    /// To write what the agent, its tools or the system said.
    #[serde(skip_serializing_if = "is_off")]
    pub agent_messages: bool,
    /// For a token of one session: that the model writes the agent's own memory in
    /// its turns, which all sessions share.
    #[serde(skip_serializing_if = "is_off")]
    pub agent_memory: bool,
    /// Registered tools that may be called by name.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_ALLOWED_NAMES>"
    )]
    #[cfg_attr(test, schemars(length(max = MAX_ALLOWED_NAMES)))]
    pub tools: Vec<Id>,
}

impl Allow {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

// serde asks with a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_off(flag: &bool) -> bool {
    !flag
}

impl Caller {
    /// The only session that this caller may see, if it is narrowed to one.
    pub fn only_session(&self) -> Option<&Id> {
        self.scope().and_then(|scope| scope.session_id.as_ref())
    }

    /// Whether it may write messages that are not a user's: what the agent, its
    /// tools or the system said.
    pub fn may_write_agent_messages(&self) -> bool {
        self.allows(|allow| allow.agent_messages)
    }

    /// Whether it may add system instructions to a turn.
    pub fn may_set_system_instructions(&self) -> bool {
        self.allows(|allow| allow.system_instructions)
    }

    /// Whether it may bring tools of its own to a turn.
    pub fn may_bring_client_tools(&self) -> bool {
        self.allows(|allow| allow.client_tools)
    }

    /// Whether it may have this model answer.
    pub fn may_choose_model(&self, name: &str) -> bool {
        self.allows(|allow| allow.models.iter().any(|model| model.as_str() == name))
    }

    /// Whether in its turns the model writes the agent's own blocks, which all
    /// sessions share, beside the session's.
    pub fn lets_model_write_agent_memory(&self) -> bool {
        self.only_session().is_none() || self.allows(|allow| allow.agent_memory)
    }

    fn scope(&self) -> Option<&TokenScope> {
        match self {
            Caller::Owner => None,
            Caller::Scoped(scope) => Some(scope),
        }
    }

    fn allows(&self, of: impl FnOnce(&Allow) -> bool) -> bool {
        self.scope().is_none_or(|scope| of(&scope.allow))
    }
}
