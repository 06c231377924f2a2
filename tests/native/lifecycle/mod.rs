//! Whole sessions: retention, export, import.

pub mod agent_file;
pub mod backups;
pub mod bookmarks;
mod hostile_files;
pub mod inert_files;
pub mod malformed_files;
pub mod manual_retention;
pub mod pending_imports;
pub mod retention;
mod retention_during_turns;
pub mod sdk_rows;
pub mod session_rows;
pub mod transfer;
pub mod transfer_memory;
pub mod transfer_rights;
pub mod verify;
