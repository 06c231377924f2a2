//! The operations that a caller can run on an agent, and the agent's other entry points.
//! The edge has already found the object. The result is JSON, a stream or an error.
//!
//! `route` parses a URL, `request` identifies the caller, and `admission` checks a request before its
//! body is read. Then one of the entry points follows: `dispatch` for operations, `chat` for turns,
//! `transfer` for the files of sessions, `agent_file` for the file of a whole agent, `mcp` for clients
//! of the Model Context Protocol, `socket` for frames. The object's alarm calls `jobs`, which decides
//! which background work is due. `defaults` reads the deployed defaults.
//! `request_line`, `request_span` and `tracing` describe a request to the operator.
//!
//! This crate uses all crates of the layers below. From HTTP it uses only methods and
//! paths.

pub mod admission;
pub mod agent_file;
#[cfg(feature = "testing")]
pub mod answers;
#[cfg(not(feature = "testing"))]
#[path = "answers/unchecked.rs"]
mod answers;
pub mod authorization;
pub mod chat;
pub mod defaults;
pub mod dispatch;
pub mod file_import;
pub mod jobs;
pub mod json_schema;
pub mod limits;
pub mod mcp;
pub mod operation;
pub mod operations;
pub mod preflight;
pub mod provider;
pub mod refusal;
pub mod request;
pub mod request_line;
pub mod request_span;
pub mod route;
pub mod session_address;
pub mod socket;
pub mod table;
pub mod tracing;
pub mod transfer;

/// The API document, generated from the table of operations. A test compares the two.
#[cfg(feature = "testing")]
pub const OPENAPI_JSON: &str = include_str!("../../../generated/openapi.json");
