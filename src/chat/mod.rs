//! The chat's protocol, as far as it needs no storage and no waiting: what a
//! client asks for, what may become of it in the log, what it is told back.
//!
//! The clients are the AI SDK's `Chat` over HTTP and the `agents` package's
//! `AgentClient` and `useAgentChat` over a WebSocket, in the versions that
//! package.json pins. What they do rules the code here:
//!
//! - A stream is one assistant message: `start` with its id, steps, `finish`.
//!   The client throws at a chunk type, a field's type or a `finishReason` that
//!   it does not know, at a delta or an end without its start, and at a tool's
//!   outcome without its call ([`chunks`], [`chunk_writer`]).
//! - A client with automatic resending looks at the calls after the last
//!   `step-start`: are all answered, it sends again, also after an `abort`. So
//!   each model call is a step, and a cut leaves an open step behind.
//! - After a client tool's answer or an approval, HTTP sends the whole history
//!   again, the answer inside the assistant's message, and appends what it hears
//!   to that message: `start` carries that message's id again. A socket sends a
//!   small frame of its own and then asks to resume ([`frames`]); there `start`
//!   carries no id, since the id would make it drop the parts that it has.
//! - Resuming over HTTP starts an empty message at `start`, so a continued
//!   message is told from its beginning ([`recount`]).
//! - A socket that asks whether a turn runs is told `resuming`, and hears the
//!   chunks so far, marked as a replay, only once it has acknowledged. Until then
//!   live chunks are withheld from it: in another order they would be refused. So
//!   it is with the socket that answered a call: it is told `resuming` as soon as
//!   the turn goes on, and asks by itself too; it acknowledges but one of the two.
//! - A turn on a socket ends with `done`; the history that is sent for others to
//!   see what the log made of it comes after. Before it, an onlooker would put
//!   what it heard over what is stored. Who asked has no need of it, but where the
//!   turn was a continuation: that client shows two messages until it is told.
//! - Regenerating cuts the answer off the client's own list first: over HTTP
//!   `messageId` names it if the caller did; a socket sends the list alone.
//! - Editing a message sends it again under its old id, as the last of the list.

pub mod accept;
pub mod answers;
pub mod chunk_writer;
pub mod chunks;
pub mod client_tools;
pub mod driver;
pub mod early;
mod ending;
pub mod frames;
pub mod open_calls;
pub mod plan;
pub mod recount;
pub mod recover;
pub mod registered;
pub mod request;
pub mod retell;
pub mod running_turns;
pub mod store;
pub mod turn;
pub mod turn_context;
pub mod turn_tools;

#[cfg(test)]
mod recorded;
