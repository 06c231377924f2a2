//! Compaction: older messages are summarized, and the summary replaces them wherever the
//! path is read. The log never changes.
//!
//! `plan` reads what a compaction may cover. The decisions are pure functions (`boundary`, `is_due`
//! in `auto`, the prompts in `summary`). The request for a summary runs outside any transaction. The
//! overlay is written only if none of the summarized events was changed in the meantime.

pub mod act;
pub mod auto;
pub mod boundary;
pub mod configure;
pub mod estimate;
pub mod fixed;
pub mod journal;
pub mod manual;
pub mod plan;
pub mod service;
pub mod settings;
pub mod summarizer;
pub mod summary;
