//! The tables: their migrations (`schema`), and the small tables that no other crate owns. These
//! contain the agent's configuration, calibration, and the calls that notify a service of an event
//! (`callbacks`).
//!
//! The progress of work that takes longer than a request is here, too: retention, consolidation,
//! the schedule of backups. A purge overwrites texts (`erased`, `erasing`) and then clears the
//! freed pages (`clearing`).
//!
//! This crate knows rows. It does not know what a message or a memory block is.

pub mod backup_plan;
pub mod calibration;
pub mod callbacks;
pub mod checks;
pub mod clearing;
pub mod config;
pub mod consolidation;
pub mod erased;
pub mod erasing;
pub mod json_schema;
pub mod learn_failure;
pub mod learn_settings;
pub mod learned_windows;
pub mod limits;
pub mod memory_use;
pub mod model_settings;
pub mod restores;
pub mod retention;
pub mod retention_progress;
pub mod schema;
pub mod stored;
pub mod summary_service;
pub mod tables;
pub mod when_busy;

#[cfg(feature = "testing")]
pub mod testing;
