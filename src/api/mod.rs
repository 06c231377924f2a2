//! The operations: what a caller can ask of an agent. A request that got here
//! has been routed and its caller identified; it leaves as JSON or as an error.
//!
//! The door is `dispatch` for operations, `turns` for chat, `transfer` for files and
//! `socket` for frames. Knows every district below, and nothing of HTTP but paths.

#[cfg(test)]
pub mod answers;
pub mod dispatch;
pub mod door;
pub mod limits;
pub mod listener;
#[cfg(test)]
mod openapi;
pub mod operation;
pub mod operations;
pub mod route;
pub mod shown;
pub mod socket;
pub mod table;
#[cfg(any(test, target_arch = "wasm32"))]
pub mod transfer;
pub mod turns;

/// The API document, generated from the table of operations and held to it by a test.
pub const OPENAPI_JSON: &str = include_str!("../../generated/openapi.json");
