//! The clients that watch a session through a socket, and their answers to calls.

use serde::{Deserialize, Serialize};

use crate::request::answers::CallAnswer;
use access::{MemoryScope, Principal, PrincipalKind};
use base::ids::Id;
use base::trace::StoredTrace;
use models::ToolDefinition;
use store::limits::PrincipalLimits;

/// The clients that watch a session through a socket.
pub trait Audience {
    /// Sends a frame to every client that isn't waiting for a replay. `except` is the id of a
    /// request whose client is skipped.
    fn send(&self, session_id: &Id, frame: &str, except: Option<&str>);

    /// Whether any client watches the session.
    fn is_watching(&self, session_id: &Id) -> bool;

    /// Whether any client waits for a replay of the session's turn.
    fn awaits_replay(&self, session_id: &Id) -> bool;
}

/// A socket's answer to a call. It may arrive before the turn with the call has ended, since a
/// client runs its tools as soon as it receives their calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientReply {
    pub answer: CallAnswer,
    pub continues: bool,
    pub client_tools: Vec<ToolDefinition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<PrincipalKind>,
    /// The memory that the model may read and write for the caller.
    #[serde(rename = "reach")]
    pub memory_scope: MemoryScope,
    /// The limits of the caller's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PrincipalLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<StoredTrace>,
}

impl ClientReply {
    /// The caller that answered.
    pub fn principal(&self) -> Principal {
        Principal {
            kind: self.asked_by,
            memory_scope: self.memory_scope,
            limits: self.limits.clone(),
            trace: self.trace.clone(),
        }
    }
}
