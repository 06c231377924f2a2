//! An OAuth 2.1 client: an agent uses a tool server in the name of a person who has
//! authorized it.
//!
//! A server that requires an authorization refuses the agent and names its metadata.
//! `begin.rs` finds the authorization server, registers the agent's client there, and
//! builds the URL that the person opens. The person's browser is redirected to the Worker
//! with a code, which `finish.rs` exchanges for tokens. `access.rs` adds the token to each
//! request, and renews it.
//!
//! Invariants: a token is only sent to the server that it was issued for, and to the
//! authorization server that issued it. It is stored encrypted, and no operation, export,
//! error or log contains it. Each URL is checked like that of a tool (`TOOL_ORIGINS`),
//! including those in a server's metadata.

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
