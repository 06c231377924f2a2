//! The base of all other crates: values, errors, JSON, limits in bytes, and the interfaces to the
//! runtime (`database`, `host`, `outbound`, `background`, and `recovery`, which the platform may lack).
//!
//! Nothing here depends on a table. A session appears only as the owner of a task: `owner` names
//! it, and `slots`, `budget` and `outbound` share fairly between owners. `action` and `part` have
//! the names in messages that all crates share.

pub mod action;
pub mod allocator;
pub mod background;
pub mod budget;
pub mod checks;
pub mod columns;
pub mod data_url;
pub mod database;
pub mod days;
pub mod deployed;
pub mod envelope;
pub mod error;
pub mod exclusive;
pub mod filter;
pub mod hash;
pub mod host;
pub mod ids;
pub mod json;
pub mod leased_calls;
pub mod numbers;
pub mod outbound;
pub mod owner;
pub mod packed;
pub mod part;
pub mod percent;
pub mod plain_text;
pub mod quoted;
pub mod read_cache;
pub mod recovery;
pub mod rows;
pub mod schema;
pub mod settings;
pub mod slots;
pub mod tables;
pub mod tags;
pub mod text;
pub mod tokens;
pub mod trace;

#[cfg(feature = "testing")]
pub mod testing;
