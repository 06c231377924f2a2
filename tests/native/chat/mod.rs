//! Turns: start, interruption, recovery, listeners.

pub mod caching;
pub mod callbacks;
pub mod cut_off;
mod destroyed;

mod fresh;
pub mod last_turns;
pub mod laundering;
mod leases;
mod ledger;
pub mod lessons;
mod limits;
pub mod listeners;
mod long_outputs;
pub mod mcp;
mod meanwhile;
mod oauth;
pub mod out_of_band;
mod own_class;
mod provider_data;
mod questions;
pub mod queue;
mod records;
mod resuming;
pub mod run_turn;
mod spans;
pub mod tools;
pub mod trickles;
pub mod turns;
pub mod usage;
pub mod windows;
