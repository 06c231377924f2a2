//! The context that a model gets in a turn: the messages that fit (`working_context`), the
//! summaries that replace the others (`compaction`), and the tools on its memory (`tools`).
//! For applications that call a model themselves, `for_model` prepares messages in the same
//! way.
//!
//! This crate depends on messages, memory and models, but not on turns or callers.

pub mod compaction;
pub mod for_model;
pub mod json_schema;
pub mod tools;
pub mod working_context;
