//! Sessions, their events and messages, and search, from a caller's perspective.

#[path = "log/mod.rs"]
mod log;
#[path = "messages/mod.rs"]
mod messages;
#[path = "search/mod.rs"]
mod search;
pub mod shared;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::sockets::RecordedSockets;
