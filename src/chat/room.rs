//! What a turn works with: the agent's memory, the running turns, the sockets.

use crate::chat::live::{Audience, Desk};
use crate::memory::Memory;

/// What a turn needs of the agent.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    pub memory: Memory<'a>,
    pub desk: &'a Desk,
    pub audience: &'a dyn Audience,
}
