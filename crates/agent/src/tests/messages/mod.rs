//! Messages, branches and pages.

pub mod long_reads;
pub mod parted;
pub mod path_length;
pub mod pieces;
pub mod random_play;
pub mod view;
