//! Session Agent: durable memory for AI agents, one Durable Object an agent.
//!
//! The map is in ARCHITECTURE.md. In one line: `edge` receives a request and
//! hands it to `api`, which finds the operation; the operation decides, and
//! reads or writes through `sessions` and `log`, which know tables.

// Natively there is no edge, so what only the edge calls looks unused.
#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]

mod access;
mod allocator;
mod api;
mod budget;
mod calibration;
mod changes;
mod chat;
mod compaction;
mod config;
mod data_url;
mod database;
mod error;
mod host;
mod ids;
mod json;
mod log;
mod memory;
mod messages;
mod models;
mod numbers;
mod outside;
mod schema;
mod search;
mod sessions;
mod slots;
mod staging;
mod tokens;
mod tools;
mod transfer;
mod tree;
mod usage;
mod vectors;
mod working_context;

#[cfg(target_arch = "wasm32")]
mod edge;
#[cfg(test)]
mod testing;
