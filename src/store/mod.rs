//! The tables: their migrations, and the small ones that no other district owns
//! (the agent's configuration, the change feed, usage, calibration, staged imports).
//!
//! Knows rows, and not what a message or a block of memory is.

pub mod calibration;
pub mod changes;
pub mod config;
pub mod schema;
pub mod staging;
pub mod stored;
pub mod tables;
pub mod usage;
