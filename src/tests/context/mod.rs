//! Working contexts, estimates and compaction.

pub mod compaction;
pub mod estimates;
pub mod working_context;
