//! The derive `JsonSchema` of this crate: see `base::schema`.

#[cfg(not(feature = "testing"))]
pub use base::schema::NoSchema as JsonSchema;
#[cfg(feature = "testing")]
pub use schemars::JsonSchema;
