//! How far the model reaches in a turn. A turn has a caller, and is stored; one
//! that goes on with what another caller began reaches as far as the narrower of
//! the two.

use serde::{Deserialize, Serialize};

use super::scope::Caller;

/// The narrowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelReach {
    /// It writes this session's blocks, and finds what was said in this session.
    Session,
    /// It writes the agent's blocks, too.
    SessionAndMemory,
    /// It finds what was said in every session, too.
    #[default]
    Agent,
}

impl ModelReach {
    pub fn is_agent(&self) -> bool {
        *self == Self::Agent
    }

    /// Whether the model writes the agent's own blocks, which all sessions share.
    pub fn writes_agent(self) -> bool {
        self != Self::Session
    }
}

impl Caller {
    pub fn reach(&self) -> ModelReach {
        if self.only_session().is_none() {
            ModelReach::Agent
        } else if self.lets_model_write_agent_memory() {
            ModelReach::SessionAndMemory
        } else {
            ModelReach::Session
        }
    }
}
