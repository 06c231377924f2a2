//! The message view: the log as AI SDK messages. A message that was appended as a message
//! is one event, and is returned as it was sent. A run of assistant and tool events is
//! returned as one assistant message. Messages are appended, updated and deleted here, and
//! `tree` reads the branches of a session.

pub mod append;
pub mod change;
pub mod delete;
pub mod derived;
pub mod erased_results;
pub mod feed;
pub mod history;
pub mod linear_path;
pub mod page;
pub mod parse;
mod piece;
pub mod read;
pub mod run;
pub mod runs;
mod same;
pub mod tree;
pub mod view;
