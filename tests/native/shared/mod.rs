//! Helpers for several areas of tests. Each test binary compiles them.

pub mod alice;
pub mod bucket;
pub mod callbacks;
pub mod examples;
pub mod files;
pub mod learner;
pub mod long;
pub mod mcp;
pub mod naive;
pub mod onlookers;
pub mod pieces;
pub mod provider;
pub mod searches;
pub mod totals;
pub mod turns;
pub mod vectors;
