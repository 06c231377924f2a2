//! OAuth 2.1 as a client: an agent uses a server of tools in the name of a person who has
//! allowed it.
//!
//! A server that wants an authorization refuses the agent and names its metadata. `begin.rs`
//! finds the authorization server, registers the agent's client there, and makes the address
//! that the person opens. The person's browser comes back to the Worker with a code, which
//! `finish.rs` exchanges for tokens. `access.rs` puts the token into each request, and renews it.
//!
//! The rules this folder protects: a token is sent to the server that it was issued for, and
//! to the authorization server that issued it, and to nobody else. It is stored encrypted, and
//! no operation, export, error or log contains it. Each address is checked as that of a tool
//! (`TOOL_ORIGINS`), also those that a server's metadata name.

pub mod access;
pub mod begin;
pub mod challenge;
mod client;
mod documents;
pub mod finish;
mod metadata;
pub mod settings;
pub mod stored;
mod token;
