//! The kinds of callers, and the rights of a minted token.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::ids::Id;
use base::json::{self, list};
use store::limits::PrincipalLimits;
use store::memory_use::MemoryUse;

/// The most names in one list of an [`Allow`].
pub const MAX_ALLOWED_NAMES: usize = 32;

/// The sender of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// The holder of the secret, or anyone if the Worker is open.
    Owner,
    /// The holder of a minted token.
    Scoped(TokenScope),
}

/// The rights of a minted token. The token contains them, and an open socket stores them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenScope {
    /// The token is only for this session. `None`: for all sessions of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// The token is only for these operations. `None`: for all operations except those that need
    /// the secret and those that a token must name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Allow::is_nothing")]
    pub allow: Allow,
    /// The limits for turns with this token, in addition to the agent's own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PrincipalLimits>,
    /// The most that requests over the base URL with this token let the model do with the agent's
    /// memory. `None`: the agent's configuration decides, and the request's header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_memory: Option<MemoryUse>,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

/// The permissions of a token beyond its operations. Each permission is off unless it is granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Allow {
    /// The models that a turn may name, written as in `configureAgent`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_ALLOWED_NAMES>"
    )]
    #[schemars(length(max = MAX_ALLOWED_NAMES))]
    pub models: Vec<Id>,
    /// Whether a turn may add system instructions.
    #[serde(skip_serializing_if = "is_off")]
    pub system_instructions: bool,
    /// Whether a turn may include tools of the client.
    #[serde(skip_serializing_if = "is_off")]
    pub client_tools: bool,
    /// Whether the holder may write messages of the agent, its tools or the system.
    #[serde(skip_serializing_if = "is_off")]
    pub agent_messages: bool,
    /// For a token for one session: whether the model may write the agent's own memory,
    /// which all sessions share, in the token's turns.
    #[serde(skip_serializing_if = "is_off")]
    pub agent_memory: bool,
    /// Whether the holder may purge: `erase`, and deletions with `purge: true`. The token's
    /// `operations` must also include the operation. The rows that a purge writes are
    /// counted for the holder.
    #[serde(skip_serializing_if = "is_off")]
    pub purge: bool,
    /// The registered tools that the holder may call by name.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_ALLOWED_NAMES>"
    )]
    #[schemars(length(max = MAX_ALLOWED_NAMES))]
    pub tools: Vec<Id>,
}

impl Allow {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

// serde passes a reference.
fn is_off(flag: &bool) -> bool {
    !flag
}

impl Caller {
    /// The only session that this caller may see, if the caller's token is for one
    /// session.
    pub fn only_session(&self) -> Option<&Id> {
        self.scope().and_then(|scope| scope.session_id.as_ref())
    }

    /// This caller, with the right to an operation that reveals less than one that its token
    /// allows.
    pub fn with_operation(&self, operation: &str) -> Self {
        let mut caller = self.clone();
        if let Caller::Scoped(TokenScope {
            operations: Some(names),
            ..
        }) = &mut caller
        {
            names.push(operation.to_owned());
        }
        caller
    }

    /// Whether the caller may write messages of the agent, its tools or the system.
    pub fn may_write_agent_messages(&self) -> bool {
        self.allows(|allow| allow.agent_messages)
    }

    /// Whether the caller may add system instructions to a turn.
    pub fn may_set_system_instructions(&self) -> bool {
        self.allows(|allow| allow.system_instructions)
    }

    /// Whether the caller may bring its own tools to a turn.
    pub fn may_bring_client_tools(&self) -> bool {
        self.allows(|allow| allow.client_tools)
    }

    /// The models that the caller's token allows by name.
    pub fn allowed_models(&self) -> &[Id] {
        self.scope().map_or(&[], |scope| &scope.allow.models)
    }

    /// Whether the caller may choose this model for a turn.
    pub fn may_choose_model(&self, name: &str) -> bool {
        self.allows(|allow| allow.models.iter().any(|model| model.as_str() == name))
    }

    /// Whether the caller may call this registered tool by itself, outside of a turn.
    pub fn may_call_tool(&self, name: &str) -> bool {
        self.allows(|allow| allow.tools.iter().any(|tool| tool.as_str() == name))
    }

    /// Whether the caller may call any registered tool by itself.
    pub fn may_call_some_tool(&self) -> bool {
        self.allows(|allow| !allow.tools.is_empty())
    }

    /// Whether the model may write the agent's own blocks, which all sessions share, in
    /// this caller's turns.
    pub fn lets_model_write_agent_memory(&self) -> bool {
        self.only_session().is_none() || self.allows(|allow| allow.agent_memory)
    }

    /// Whether the caller may purge by this operation.
    pub(super) fn may_purge_by(&self, operation: &str) -> bool {
        self.scope().is_none_or(|scope| {
            let names = scope.operations.iter().flatten();
            scope.allow.purge && names.into_iter().any(|name| name == operation)
        })
    }

    /// A text that is the same for callers of the same rights, whenever their tokens expire.
    pub fn rights_text(&self) -> String {
        let Caller::Scoped(scope) = self else {
            return String::new();
        };
        let scope = TokenScope {
            expires_at: 0,
            ..scope.clone()
        };
        json::encode(&scope).unwrap_or_default()
    }

    /// The limits of the caller's token.
    pub fn limits(&self) -> Option<&PrincipalLimits> {
        self.scope().and_then(|scope| scope.limits.as_ref())
    }

    /// The most that a request over the base URL may let the model do with the memory, if the
    /// caller's token limits it.
    pub fn most_memory(&self) -> Option<MemoryUse> {
        self.scope().and_then(|scope| scope.session_memory)
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
