//! The core of Session Agent: values and the interfaces to the runtime, the tables, access,
//! search, the event log, and its view as messages. The core knows no runtime, calls no
//! model and runs no turn.

#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(
        dead_code,
        reason = "without the edge, what only the edge calls looks unused; the build for wasm32 has the edge"
    )
)]
#![cfg_attr(
    any(test, feature = "testing"),
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

pub mod base;

pub mod store;

pub mod access;
pub mod search;

pub mod log;

pub mod messages;

#[cfg(feature = "testing")]
pub mod testing;
