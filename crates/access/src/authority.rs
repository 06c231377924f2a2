//! The memory scope of the model in a turn: which memory it may read and write. It follows
//! from the turn's caller and is stored with the turn. A turn that continues another
//! caller's turn has the narrower scope of the two.
//!
//! Each stored text also records the [`Authority`] of the caller who caused it. Anything
//! derived from the text later writes no more than that caller could, and is charged to
//! that caller.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::Caller;
use base::trace::{self, StoredTrace};
use store::limits::PrincipalLimits;

/// Ordered from the narrowest to the widest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MemoryScope {
    /// The model writes this session's blocks, and searches this session's messages.
    Session,
    /// The model also writes the agent's blocks.
    SessionAndMemory,
    /// The model also searches the messages of every session.
    #[default]
    Agent,
}

impl MemoryScope {
    pub fn is_agent(&self) -> bool {
        *self == Self::Agent
    }

    /// Whether the model writes the agent's own blocks, which all sessions share.
    pub fn writes_agent(self) -> bool {
        self != Self::Session
    }
}

/// The authority of the caller who caused a text. The default is full authority: that of
/// the secret, and of the agent itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authority {
    /// Whether the caller used a minted token.
    pub is_token: bool,
    pub memory_scope: MemoryScope,
    /// The limits of the token.
    pub limits: Option<PrincipalLimits>,
}

impl Authority {
    pub fn is_full(&self) -> bool {
        *self == Self::default()
    }

    /// The authority over a text that both callers caused: the narrower scope. The last
    /// writer pays if their token has limits.
    pub fn joined(self, last: Self) -> Self {
        Self {
            is_token: self.is_token || last.is_token,
            memory_scope: self.memory_scope.min(last.memory_scope),
            limits: last.limits.or(self.limits),
        }
    }
}

/// The kind of a caller, as the record of a turn names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PrincipalKind {
    /// The holder of the secret, or anybody where the Worker is open.
    Secret,
    /// The holder of a minted token.
    Token,
}

/// Facts about the caller who requested a turn, stored until the turn is over.
#[derive(Clone, Debug, Default)]
pub struct Principal {
    /// `None`: an older build did not store it.
    pub kind: Option<PrincipalKind>,
    pub memory_scope: MemoryScope,
    /// The limits of the caller's token.
    pub limits: Option<PrincipalLimits>,
    /// The trace of the caller's request.
    pub trace: Option<StoredTrace>,
}

impl Principal {
    pub fn authority(&self) -> Authority {
        Authority {
            is_token: self.kind == Some(PrincipalKind::Token),
            memory_scope: self.memory_scope,
            limits: self.limits.clone(),
        }
    }
}

impl Caller {
    pub fn authority(&self) -> Authority {
        Authority {
            is_token: *self != Self::Owner,
            memory_scope: self.memory_scope(),
            limits: self.limits().cloned(),
        }
    }

    pub fn principal(&self) -> Principal {
        Principal {
            kind: Some(match self {
                Self::Owner => PrincipalKind::Secret,
                Self::Scoped(_) => PrincipalKind::Token,
            }),
            memory_scope: self.memory_scope(),
            limits: self.limits().cloned(),
            trace: trace::current().map(|trace| StoredTrace::of(&trace)),
        }
    }

    pub fn memory_scope(&self) -> MemoryScope {
        if self.only_session().is_none() {
            MemoryScope::Agent
        } else if self.lets_model_write_agent_memory() {
            MemoryScope::SessionAndMemory
        } else {
            MemoryScope::Session
        }
    }
}
