//! Messages, branches and pages.

pub mod long_reads;
mod pieces;
pub mod random_play;
pub mod view;
