//! The tools that a turn may call in addition to those of the memory: tools that the operator
//! registered, servers of tools, and how each is shown.

pub mod exchange;
pub mod input;
pub mod mcp;
pub mod registered;
pub mod rows;
pub mod shown;
pub mod turn_tools;
