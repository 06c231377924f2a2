//! Whole sessions: kept, exported, imported.

pub mod backups;
pub mod bookmarks;
pub mod files;
pub mod foreign;
mod hostile_files;
pub mod kept;
pub mod rearranged;
pub mod retention;
pub mod retention_by_hand;
mod retention_meanwhile;
pub mod staging;
pub mod transfer;
pub mod transfer_memory;
pub mod transfer_rights;
pub mod verify;
pub mod whole;
