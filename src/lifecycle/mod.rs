//! Clears, deletes, forks, exports and imports whole sessions. This folder names every
//! table with rows of a session, so that deleting a session leaves no row behind.

pub mod clear;
pub mod delete;
pub mod fork;
pub mod transfer;
