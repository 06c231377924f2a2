//! Turns, the context of their models, and learning, from a caller's perspective.

#[path = "chat/mod.rs"]
mod chat;
#[path = "context/mod.rs"]
mod context;
#[path = "learning/mod.rs"]
mod learning;
#[path = "provider_api/mod.rs"]
mod provider_api;
pub mod shared;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::sockets::RecordedSockets;
