//! Helpers for several areas of tests. Each test binary compiles them.

pub mod alice;
pub mod bucket;
pub mod callbacks;
pub mod examples;
pub mod files;
pub mod learner;
pub mod long;
pub mod mcp;
pub mod naive_tree;
pub mod provider;
pub mod random_logs;
pub mod searches;
pub mod sockets;
pub mod totals;
pub mod turns;
pub mod vectors;
