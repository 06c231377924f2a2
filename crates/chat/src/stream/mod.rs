//! An answer as a client is sent it: chunks, in an order that every client takes.

pub mod answer_events;
pub mod chunk_writer;
pub mod chunks;
pub mod recount;
