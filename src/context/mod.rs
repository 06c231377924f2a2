//! What a model is given in a turn: the messages that fit (`working_context`), what
//! stands for those that don't (`compaction`), and the tools on its memory (`tools`).
//!
//! Knows messages, memory and models. Knows no turn, and no caller.

pub mod compaction;
pub mod tools;
pub mod working_context;
