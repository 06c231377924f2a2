//! The base of every other folder: values, errors, JSON, limits in bytes, and the three
//! interfaces to the runtime (`database`, `host`, `outbound`; `recovery` is a part of the
//! first that the platform may lack).
//!
//! Nothing here knows a table or a session. Of messages, `action` and `part` know the
//! names that every district shares.

#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(
        dead_code,
        reason = "without the edge, what only the edge calls looks unused; the build for wasm32 has the edge"
    )
)]

pub mod action;
pub mod allocator;
pub mod budget;
pub mod columns;
pub mod data_url;
pub mod database;
pub mod days;
pub mod deployed;
pub mod envelope;
pub mod error;
pub mod filter;
pub mod hash;
pub mod host;
pub mod ids;
pub mod json;
pub mod numbers;
pub mod outbound;
pub mod owner;
pub mod packed;
pub mod part;
pub mod recovery;
pub mod rows;
pub mod settings;
pub mod slots;
pub mod tags;
pub mod text;
pub mod tokens;
pub mod trace;

#[cfg(feature = "testing")]
pub mod testing;
