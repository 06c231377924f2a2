//! `#[derive(JsonSchema)]`: the type's shape is described in openapi.json, which a test writes.
//!
//! With the feature `testing`, the derive and the trait are those of schemars. Without it, the derive
//! adds nothing and every type is [`Described`], so that a deployed Worker contains no schemas.

#[cfg(not(feature = "testing"))]
pub use macros::JsonSchema;
#[cfg(feature = "testing")]
pub use schemars::JsonSchema;

/// An input or an output that can describe itself for openapi.json.
#[cfg(feature = "testing")]
pub trait Described: JsonSchema {}
#[cfg(feature = "testing")]
impl<T: JsonSchema> Described for T {}
#[cfg(not(feature = "testing"))]
pub trait Described {}
#[cfg(not(feature = "testing"))]
impl<T> Described for T {}
