//! Whole sessions: cleared, deleted, forked, exported and imported. Whatever a
//! session has in any table is named here, so that nothing of it is left behind.

pub mod clear;
pub mod delete;
pub mod fork;
pub mod transfer;
