//! Messages, branches and pages.

mod append_messages;
pub mod boundaries;
pub mod long_reads;
pub mod page_fast_path;
pub mod path_length;
pub mod random_play;
pub mod split_messages;
pub mod view;
