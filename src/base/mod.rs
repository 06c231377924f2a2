//! What every other district stands on: values, errors, JSON, limits in bytes, and
//! the three seams (`database`, `host`, `outside`) behind which the runtime lies.
//!
//! Nothing here knows a table, a session or a message.

pub mod action;
pub mod allocator;
pub mod budget;
pub mod columns;
pub mod data_url;
pub mod database;
pub mod error;
pub mod host;
pub mod ids;
pub mod json;
pub mod numbers;
pub mod outbound;
pub mod settings;
pub mod slots;
pub mod tokens;
