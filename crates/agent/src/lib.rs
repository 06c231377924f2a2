//! The agent, above the core: context memory, models, a model's context, chat turns,
//! whole sessions, and the operations of the interface.

#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "a type that describes an answer is read by its schema alone"
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

use session_agent_core::{access, base, log, messages, search, store};

pub mod memory;

pub mod directory;

pub mod models;

pub mod recall;

pub mod context;

pub mod learning;

pub mod lifecycle;

pub mod chat;

pub mod api;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
