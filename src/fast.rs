//! The districts that every request passes through, as a crate of their own: Cargo.toml has
//! this crate compiled for speed and all else for size. `lib.rs` takes the districts from
//! here with the feature `split`, and compiles them itself without.

pub mod base;

pub mod store;

pub mod access;
pub mod search;

pub mod log;

pub mod messages;
