//! Clears, deletes, forks, exports and imports whole sessions, and purges what was said. It
//! names every table with rows of a session, so that deleting a session leaves no row behind.
//! `verify/` checks what the tables hold. `foreign.rs` reads the rows that the Agents SDK left
//! in an object that became ours.

pub mod clear;
pub mod delete;
pub mod erase;
pub mod foreign;
pub mod fork;
mod mention_tables;
pub mod mentions;
pub mod purge;
pub mod receipt;
pub mod restores;
pub mod retention;
mod table_pages;
pub mod transfer;
pub mod verify;
