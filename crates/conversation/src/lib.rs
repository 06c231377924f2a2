//! Conversations: sessions, their events, and the view of the events as messages.
//!
//! `session` has the rows of a session other than its events: the feed, the last turn, usage.
//! `index` stores the words of the events, and finds events by them. `log` reads and writes the
//! rows of sessions and events, with the slices and the media of events. `messages` reads the log
//! as messages, with branches and summaries. Each uses those before it, and none after it. `file`
//! is a file in a message, which they all may use.

pub mod checks;
pub mod file;
pub mod index;
pub mod json_schema;
pub mod log;
pub mod messages;
pub mod session;
pub mod tables;
