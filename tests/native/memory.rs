//! Context memory and the directory of agents, from a caller's perspective.

#[path = "directory/mod.rs"]
mod directory;
#[path = "memory/mod.rs"]
mod memory;
pub mod shared;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::sockets::RecordedSockets;
