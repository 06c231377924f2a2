//! The event log: one session's events in the order in which they were written. Each
//! event is a node of the session's tree.
//!
//! Rules kept here: an append is all or nothing; a `seq` is never given twice;
//! an id is written once; a parent exists, in the same session, before its child.

pub mod append;
pub mod copy;
pub mod ended_turns;
pub mod event;
pub mod find;
pub mod load;
pub mod media;
pub mod message_text;
pub mod note;
pub mod row;
pub mod session_pages;
pub mod sessions;
pub mod slices;
pub mod tip;
pub mod tool;
pub mod turn_ends;
pub mod write;

/// Events that one call may append, or ids that one call may name.
pub const MAX_EVENTS: usize = 1000;

/// Tool calls of one event: models make a few at a time.
pub const MAX_CALLS: usize = 1000;
