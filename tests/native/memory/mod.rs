//! Blocks, entries, documents, prompts, and the tools on them.

pub mod agents;
pub mod blocks;
pub mod bucket;
pub mod change_events;
pub mod counts;
pub mod filters;
pub mod invalid_input;
pub mod metadata;
pub mod model_writes;
pub mod quoting;
pub mod sdk_docs;
pub mod services;
pub mod templates;
pub mod tools;
mod unavailable_reasons;
pub mod versions;
