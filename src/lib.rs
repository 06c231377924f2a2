//! Session Agent: durable memory for AI agents, one Durable Object per agent.
//!
//! ARCHITECTURE.md is the map. In one line: `edge` receives a request and hands it
//! to `api`, which finds the operation; the operation decides, and reads or writes
//! through the districts below it. A district calls only those above it in this list.

// Natively there is no edge, so what only the edge calls looks unused.
#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]

mod base;

mod store;

mod access;
mod search;

mod log;

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
