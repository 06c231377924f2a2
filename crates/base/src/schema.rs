//! `#[derive(JsonSchema)]`: the type's shape is described in openapi.json, which a test writes.
//!
//! With a crate's feature `testing`, the derive is that of schemars. Without it, the derive adds nothing,
//! so that a deployed Worker contains no schemas. Each crate's `json_schema.rs` chooses.

pub use macros::NoSchema;

#[cfg(not(feature = "testing"))]
pub use macros::NoSchema as JsonSchema;
#[cfg(feature = "testing")]
pub use schemars::JsonSchema;
