//! The name that `RawValue` and the reader and writer of this crate agree on.

/// With this name, the type requests its exact text from the reader and the writer.
pub const RAW_NAME: &str = "the text of a value";
