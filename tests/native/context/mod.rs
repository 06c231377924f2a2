//! Working contexts, estimates and compaction.

pub mod compaction;
mod concurrent_changes;
pub mod estimates;
mod fast_path;
mod fitting;
mod for_model;
mod next_request;
mod repeated_call_ids;
mod summary_service;
pub mod working_context;
