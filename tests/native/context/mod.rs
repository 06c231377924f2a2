//! Working contexts, estimates and compaction.

pub mod compaction;
pub mod estimates;
mod fast_path;
mod fitting;
mod for_model;
mod meanwhile;
mod next_request;
mod pairs;
mod summary_service;
pub mod working_context;
