//! The parts of an agent that a turn uses: its memory, its running turns, its sockets.

use crate::run::deployed::Deployed;
use crate::run::running_turns::{Audience, RunningTurns};
use base::ids::Id;
use base::json::{self, json};
use base::outbound::ClassNotice;
use context::compaction::auto::CompactionTracker;
use memory::Memory;

/// The parts of the agent that a turn needs.
#[derive(Clone, Copy)]
pub struct TurnContext<'a> {
    pub memory: Memory<'a>,
    pub deployed: &'a Deployed,
    pub turns: &'a RunningTurns,
    pub audience: &'a dyn Audience,
    pub compactions: &'a CompactionTracker,
}

impl TurnContext<'_> {
    /// Notifies a class that extends this one of the current phase of the session's turn.
    pub fn notify_class(&self, session_id: &Id, phase: &str) {
        let notice = || json::text(&json!({"sessionId": session_id.as_str(), "phase": phase}));
        let outbound = self.memory.outbound;
        outbound.notify_class(ClassNotice::Status, &notice);
    }
}
