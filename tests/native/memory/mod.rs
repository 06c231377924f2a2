//! Blocks, entries, documents, prompts, and the tools on them.

pub mod agents;
pub mod blocks;
pub mod bucket;
pub mod change_events;
pub mod counts;
pub mod docs;
pub mod filters;
pub mod marks;
pub mod model_writes;
pub mod nonsense;
pub mod past;
pub mod quoted;
mod reasons;
pub mod services;
pub mod templates;
pub mod tools;
