//! Conversations: sessions, their events, and the view of the events as messages.
//!
//! `log` reads and writes the rows of sessions and events, with the slices and the media of events.
//! `messages` reads the log as messages, with branches and summaries. `messages` calls `log`, and
//! `log` never calls `messages`.

pub mod json_schema;
pub mod log;
pub mod messages;
