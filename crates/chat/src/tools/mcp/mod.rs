//! Servers of the Model Context Protocol (MCP) whose tools an agent's models may call:
//! `defineTool` with `mcp`.
//!
//! A server's list of tools is stored in one row, so a turn makes no request to find its
//! tools. The list is requested again by `defineTool`, and at the start of a turn once it
//! is outdated ([`refresh`]).
//!
//! Invariant: a server is untrusted. Its descriptions of tools are bounded and cleaned
//! before a model reads them, and its tools never replace another tool of the same name.
//! Its answer becomes a result or a sentence, never a failure of the turn. A tool is called
//! only as the model saw it, and a definition that the operator has not seen needs the
//! user's approval.

pub mod call;
mod client;
mod failure;
pub mod listing;
pub mod oauth;
pub mod refresh;
mod result;
pub mod revision;
pub mod server;
mod source;
mod stream;
pub mod wire;

pub use source::ServerSource;
