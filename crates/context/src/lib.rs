//! The context that a model gets in a turn: the messages that fit (`working_context`),
//! the summaries that replace the others (`compaction`), and the tools on its memory
//! (`tools`). For applications that ask a model themselves, `for_model` shows messages as
//! a model should get them.
//!
//! This district knows messages, memory and models. It knows neither turns nor callers.

pub mod compaction;
pub mod for_model;
pub mod json_schema;
pub mod tools;
pub mod working_context;
