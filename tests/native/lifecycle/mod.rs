//! Whole sessions: retention, export, import.

pub mod agent_file;
pub mod backups;
pub mod bookmarks;
pub mod files;
pub mod foreign;
mod hostile_files;
pub mod manual_retention;
pub mod pending_imports;
pub mod rearranged;
pub mod retention;
mod retention_meanwhile;
pub mod session_rows;
pub mod transfer;
pub mod transfer_memory;
pub mod transfer_rights;
pub mod verify;
