//! What a model gets in a turn: the messages that fit (`working_context`), the summaries
//! that replace the others (`compaction`), and the tools on its memory (`tools`).
//!
//! Knows messages, memory and models. Knows neither turns nor callers.

pub mod compaction;
pub mod tools;
pub mod working_context;
