//! Operations, their entry points and permissions; openapi.json; the player's agents.

#[path = "api/mod.rs"]
mod api;
mod openapi;
mod player;
pub mod shared;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::sockets::RecordedSockets;
