//! Session Agent: durable memory for AI agents, one Durable Object per agent.
//!
//! ARCHITECTURE.md is the map. In one line: `edge` receives a request and hands it
//! to `api`, which finds the operation; the operation decides, and reads or writes
//! through the districts below it. A district calls only those above it in this list.

#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(
        dead_code,
        reason = "without the edge, what only the edge calls looks unused; the build for wasm32 has the edge"
    )
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types,
        clippy::print_stdout,
        reason = "a test may panic, print and measure; what ships is also checked without its tests"
    )
)]

#[cfg(feature = "split")]
use session_agent_fast::{access, base, log, messages, search, store};

#[cfg(not(feature = "split"))]
mod base;

#[cfg(not(feature = "split"))]
mod store;

#[cfg(not(feature = "split"))]
mod access;
#[cfg(not(feature = "split"))]
mod search;

#[cfg(not(feature = "split"))]
mod log;

#[cfg(not(feature = "split"))]
mod messages;

mod memory;
mod models;

mod vectors;

mod context;

mod lifecycle;

mod chat;

mod api;

#[cfg(target_arch = "wasm32")]
mod edge;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
