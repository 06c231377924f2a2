//! Admission of requests, the table of operations, and permissions.

pub mod access;
pub mod admission;
pub mod attacks;
mod broadcasts;
pub mod config;
pub mod defaults;
pub mod examples;
pub mod faults;
mod fields;
pub mod flat;
mod jobs;
pub mod lists;
pub mod mcp;
mod mcp_offered;
mod mcp_rights;
mod mcp_subscriptions;
pub mod neighbors;
mod nonsense;
mod redacted;
mod rights;
pub mod stats;
mod worst;
mod written;
