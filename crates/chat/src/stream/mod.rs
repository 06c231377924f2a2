//! An answer as it is sent to a client: chunks, in an order that every client accepts.

pub mod answer_events;
pub mod chunk_writer;
pub mod chunks;
pub mod problem;
pub mod recount;
