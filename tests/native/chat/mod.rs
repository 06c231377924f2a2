//! Turns: begun, cut off, taken up, listened to.

pub mod caching;
pub mod callbacks;
pub mod cut_off;
mod destroyed;

pub mod early_answers;
mod fresh;
mod kept;
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
mod own_class;
mod questions;
mod records;
mod resuming;
pub mod run_turn;
mod spans;
pub mod tools;
pub mod trickles;
pub mod turns;
pub mod usage;
pub mod waiting;
pub mod windows;
