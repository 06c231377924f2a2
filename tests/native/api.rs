//! The table of operations, its doors and their rules; openapi.json; the player.

#[path = "api/mod.rs"]
mod api;
mod openapi;
mod player;
pub mod shared;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::onlookers::Onlookers;
