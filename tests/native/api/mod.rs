//! Admission of requests, the table of operations, and permissions.

pub mod access;
pub mod admission;
pub mod attacks;
mod broadcasts;
pub mod config;
pub mod defaults;
mod escaped_answers;
pub mod examples;
pub mod faults;
mod fields;
mod invalid_input;
mod jobs;
pub mod lists;
pub mod mcp;
mod mcp_offered;
mod mcp_rights;
mod mcp_subscriptions;
pub mod read_growth;
mod redacted;
mod rights;
pub mod session_isolation;
pub mod stats;
mod worst_case;
