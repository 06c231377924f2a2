//! Whole sessions and agents: files, retention, purges, and the tables of older builds.

#[path = "lifecycle/mod.rs"]
mod lifecycle;
#[path = "purge/mod.rs"]
mod purge;
pub mod shared;
#[path = "store/mod.rs"]
mod store;

pub use base::testing::Dice;
pub use shared::alice::*;
pub use shared::sockets::RecordedSockets;
