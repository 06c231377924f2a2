//! What a turn works with: the agent's memory, the running turns, the sockets.

use crate::chat::running_turns::{Audience, RunningTurns};
use crate::context::compaction::auto::CompactionTracker;
use crate::memory::Memory;

/// What a turn needs of the agent.
#[derive(Clone, Copy)]
pub struct TurnContext<'a> {
    pub memory: Memory<'a>,
    pub turns: &'a RunningTurns,
    pub audience: &'a dyn Audience,
    pub compactions: &'a CompactionTracker,
}
