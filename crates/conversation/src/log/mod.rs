//! Sessions and their event logs. A log has the events of a session in the order in which they were
//! written, and each event is a node of the session's tree.
//!
//! `sessions` has the session's row, and `session_pages` lists sessions by their last activity.
//! `media` and `slices` store the parts of an event that don't fit its row, and `queued` the
//! messages that wait for the end of a turn. `ended_turns` and `turn_ends` find the events that
//! ended turns. `totals` has the messages and tokens of a path. `boundary` decides where runs are
//! split into messages.
//!
//! Invariants: an append is all or nothing; a `seq` is never reused; an id is written once; a
//! parent exists, in the same session, before its child.

pub mod append;
pub mod boundary;
pub mod copy;
pub mod ended_turns;
pub mod event;
pub mod event_facts;
pub mod event_vectors;
pub mod find;
pub mod heads;
pub mod learning_watermarks;
pub mod load;
pub mod logged_calls;
pub mod media;
pub mod message_text;
pub mod note;
pub mod old_events;
pub mod queued;
pub mod rewrite;
pub mod row;
pub mod row_draft;
pub mod session_lookup;
pub mod session_pages;
pub mod sessions;
pub mod slices;
pub mod tip;
pub mod tokens;
pub mod tool;
pub mod totals;
pub mod turn_ends;
pub mod unfolded;
pub mod user_texts;
pub mod vector_texts;
pub mod whole_rows;
pub mod write;

/// Events that one call may append, or ids that one call may name.
pub const MAX_EVENTS: usize = 1000;

/// Tool calls of one event: models make a few at a time.
pub const MAX_CALLS: usize = 1000;
