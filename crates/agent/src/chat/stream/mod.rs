//! What a client is sent of an answer: chunks, in an order that every client takes.

pub mod chunk_writer;
pub mod chunks;
pub mod recount;
