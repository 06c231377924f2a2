//! Typed calls to Session Agent, durable memory for AI agents on Cloudflare, from Workers in
//! Rust.
//!
//! ```no_run
//! # #[cfg(feature = "worker")]
//! # async fn example(env: worker::Env) -> Result<(), Box<dyn std::error::Error>> {
//! use session_agent_client::{Agent, AppendMessage, GetHistory, NewMessage};
//!
//! let token = env.secret("SESSION_AGENT_TOKEN")?.to_string();
//! let agent = Agent::service(env.service("MEMORY")?, "alice")?.with_token(token);
//! agent.call(&AppendMessage::new("trip", NewMessage::user("Is it raining?"))).await?;
//! let page = agent.call(&GetHistory::new("trip").limit(20)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`operations`] has a struct for each operation, and the shape of its answer. They are
//!   made when the crate is compiled, from the document of Session Agent's reference.
//! - [`Agent`] runs them, one page or one item at a time where an answer has pages.
//! - [`Error`] describes what went wrong: a refusal has a [`Code`].
//! - [`Wire`] is all that the crate asks of its surroundings. Workers' is built in.

#![cfg_attr(
    test,
    allow(
        clippy::panic,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::disallowed_macros,
        reason = "a test may panic; what ships is also checked without its tests"
    )
)]

#[macro_use]
mod macros;

mod address;
mod agent;
mod error;
mod message;
mod operation;
pub mod operations;
mod pages;
mod retry;
mod transfer;
mod wire;
#[cfg(feature = "worker")]
mod worker_wire;

#[cfg(test)]
mod tests;

/// A JSON object.
pub type Object = serde_json::Map<String, serde_json::Value>;

#[expect(
    clippy::disallowed_methods,
    reason = "a caller's Worker has no other reader"
)]
fn read_json<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json)
}

pub use agent::Agent;
pub use error::{Error, Refusal, Result};
pub use message::NewMessage;
pub use operation::Operation;
#[doc(no_inline)]
pub use operations::*;
pub use pages::{Items, Paged};
pub use retry::Retry;
pub use transfer::{Export, Import, Lines};
pub use wire::{Answer, Body, Payload, Request, TraceContext, Wire};
#[cfg(feature = "worker")]
pub use worker_wire::{Binding, Received};
