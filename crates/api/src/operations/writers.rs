//! The writer that is recorded when an operation changes memory.

use crate::operation::Agent;
use base::ids::Id;
use chat::request::delivery::Delivery;
use memory::writer::MemoryWriter;

/// The writer of an operation on a block of this session, or of the agent. `delivery_id`: the call
/// to `onMemoryChange` that the caller claims to answer.
pub fn writer_of<'a>(
    agent: &Agent<'_>,
    session_id: Option<&'a Id>,
    delivery_id: Option<&Id>,
) -> MemoryWriter<'a> {
    let writer = MemoryWriter::of_caller(agent.caller, session_id);
    with_notifications_of(agent, writer, delivery_id)
}

/// Turns notifications off for a writer that answers a call which the agent made.
pub fn with_notifications_of<'a>(
    agent: &Agent<'_>,
    writer: MemoryWriter<'a>,
    delivery_id: Option<&Id>,
) -> MemoryWriter<'a> {
    let delivery = Delivery::of_memory(agent.policy, agent.name);
    MemoryWriter {
        is_silent: delivery_id.is_some_and(|id| delivery.issued(id)),
        ..writer
    }
}
