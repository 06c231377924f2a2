//! Messages, branches and pages.

mod append_messages;
pub mod boundaries;
pub mod long_reads;
pub mod path_length;
pub mod pieces;
pub mod random_play;
pub mod split_messages;
pub mod view;
