//! The name that `RawValue` and the reader and writer of this crate agree on.

/// By this name the type asks its reader and its writer for the text as it is.
pub const RAW_NAME: &str = "the text of a value";
