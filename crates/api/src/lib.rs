//! The operations that a caller can run on an agent. Before a request gets here, it is
//! routed and its caller is identified. The result is JSON or an error.
//!
//! The entry points are `dispatch` for operations, `chat` for turns, `transfer` for files,
//! `mcp` for clients of the Model Context Protocol and `socket` for frames. It uses
//! every district below. Of HTTP it knows only the paths.

#![cfg_attr(
    feature = "testing",
    allow(
        dead_code,
        reason = "a type that describes an answer is read by its schema alone"
    )
)]

#[cfg(feature = "testing")]
pub mod answers;
pub mod chat;
pub mod defaults;
pub mod dispatch;
pub mod door;
pub mod file_import;
pub mod limits;
pub mod mcp;
pub mod operation;
pub mod operations;
pub mod request_line;
pub mod route;
pub mod scheduled_backup;
pub mod socket;
pub mod table;
pub mod tracing;
pub mod transfer;
pub mod whole;

/// The API document, generated from the table of operations. A test compares the two.
#[cfg(feature = "testing")]
pub const OPENAPI_JSON: &str = include_str!("../../../generated/openapi.json");
