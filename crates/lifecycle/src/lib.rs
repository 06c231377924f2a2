//! Operations on whole sessions: clear, delete, fork, export and import. The list of tables
//! (`lifecycle/tables.rs`) defines which rows belong to a session, so no row stays behind.
//!
//! Texts are deleted in two more ways. Retention deletes texts by their age (`retention/`). A purge
//! erases texts for good (`purge.rs`) and signs a receipt (`receipt.rs`): `mentions.rs` finds the
//! mentions of a text, and `erase.rs` erases them.
//!
//! `restores.rs` tracks the restore of a backup that is in progress. `verify/` checks the content
//! of the tables. `foreign.rs` reads the rows that the Agents SDK left in an object that became
//! ours.

pub mod agents_own;
pub mod clear;
pub mod delete;
pub mod erase;
pub mod foreign;
pub mod fork;
pub mod json_schema;
mod mention_tables;
pub mod mentions;
pub mod page_clearing;
pub mod pending_import;
pub mod purge;
pub mod receipt;
pub mod retention;
mod table_pages;
pub mod tables;
pub mod transfer;
pub mod verify;

#[cfg(feature = "testing")]
pub mod testing;
