//! The address of a registered tool, and the headers that are sent with a call's arguments.

pub mod origin;
pub mod tool_address;
pub mod tool_headers;
