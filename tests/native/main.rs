//! The operations against a real SQLite, natively, as a caller sees them.

mod alice;
mod api;
mod chat;
mod context;
mod directory;
mod learning;
mod lifecycle;
mod log;
mod memory;
mod messages;
mod onlookers;
mod openapi;
mod player;
mod provider_api;
mod purge;
mod search;
mod store;

pub use ::base::testing::Dice;
pub use alice::*;
pub use onlookers::Onlookers;
