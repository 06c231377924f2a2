//! The message view: the same log seen the AI SDK's way. A message that was
//! appended as one is one event and reads back as it was sent; a run of
//! assistant and tool events reads as one assistant message.

pub mod append;
pub mod change;
pub mod delete;
pub mod feed;
pub mod history;
pub mod parse;
pub mod read;
pub mod run;
pub mod runs;
mod same;
pub mod tree;
pub mod view;
