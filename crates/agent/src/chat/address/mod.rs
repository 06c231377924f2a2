//! Where a registered tool is, and what is sent to it beside the call's arguments.

mod origin;
pub mod tool_address;
pub mod tool_headers;
