//! Turns: start, interruption, recovery, listeners.

pub mod caching;
pub mod callbacks;
mod destroyed_agents;
pub mod recovery;

mod concurrent_messages;
pub mod context_window;
pub mod endless_responses;
mod leases;
mod ledger;
mod limits;
mod long_outputs;
pub mod mcp;
mod memory_across_sessions;
pub mod model_isolation;
mod oauth;
pub mod out_of_band;
mod own_class;
pub mod provenance;
mod provider_data;
mod questions;
pub mod queue;
mod records;
mod resuming;
pub mod run_turn;
pub mod slow_listeners;
mod spans;
pub mod tools;
pub mod turn_completion;
pub mod turns;
pub mod usage;
