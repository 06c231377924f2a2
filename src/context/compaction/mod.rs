//! Compaction: older messages are summarised, and the summary stands in for
//! them wherever the path is read. The log is never touched.
//!
//! What is decided is pure (`boundary`, `threshold` in `auto`, the prompts in
//! `summary`); what a summary costs is waited for outside any transaction, and
//! its overlay is written only if nothing of what it tells was changed meanwhile.

pub mod act;
pub mod auto;
pub mod boundary;
pub mod by_hand;
pub mod configure;
pub mod estimate;
pub mod fixed;
pub mod journal;
pub mod settings;
pub mod summariser;
pub mod summary;
