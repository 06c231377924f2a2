//! Chat turns. A turn leads from a client's request to the agent's answer: its request is
//! parsed and written, models are called, tools run, listeners receive chunks. A turn ends
//! in the log, survives the object's eviction, and may be reported to a service
//! (`run/callbacks.rs`). The tools may be those of servers of the Model Context Protocol
//! (`tools/`).
//!
//! The clients are the AI SDK's `Chat` over HTTP and the `agents` package's `AgentClient`
//! and `useAgentChat` over a WebSocket, in the versions pinned by tests/package.json. The
//! code here depends on their behavior:
//!
//! - A stream is one assistant message: `start` with its id, steps, `finish`. The client
//!   throws at an unknown chunk type, field type or `finishReason`, at a delta or an end
//!   without its start, and at a tool's outcome without its call ([`stream`]).
//! - A client with automatic resending checks the calls after the last `step-start`: once all of
//!   them are answered, it sends again, even after an `abort`. So each model call is a step, and a
//!   canceled turn ends in an open step.
//! - After a client tool's answer or an approval, HTTP sends the whole history again, with
//!   the answer inside the assistant message. It appends the chunks that it receives to
//!   that message, so `start` carries the message's id again. A socket sends a small frame
//!   of its own and then requests to resume ([`frames`]). On a socket `start` carries no
//!   id, since the id would make the client drop the parts it has.
//! - A client that resumes over HTTP starts an empty message at `start`, so a continued
//!   message is sent from its beginning ([`stream::recount`]).
//! - A socket that asks whether a turn is running is sent `resuming`. It receives the chunks so
//!   far, flagged as a replay, only after its acknowledgement. Until then live chunks are delayed,
//!   since the client refuses chunks in another order. The same applies to the socket that answered
//!   a call: it is sent `resuming` as soon as the turn continues, and it also sends its own request; it
//!   acknowledges only one of the two.
//! - A turn on a socket ends with `done`. The history then sends the other sockets the turn
//!   as it is stored in the log. It is sent after `done`: if it came before, another client
//!   that shows the session would overwrite the stored message with the chunks it received.
//!   The client that started the turn needs no history, unless the turn was a continuation:
//!   that client shows two messages until it receives the history.
//! - To regenerate, a client first removes the answer from its own list: over HTTP
//!   `messageId` identifies the answer if the caller set it; a socket sends only the list.
//! - Editing a message sends it again under its old id, as the last of the list.
//!
//! The folders depend on each other in one direction, from the last to the first:
//! [`stream`] has the chunks of an answer, [`address`] the URLs of tools, [`record`] what a
//! turn did. [`request`] parses a client's request, [`frames`] are a socket's messages, and
//! [`turn`] decides step by step. [`tools`] are the tools that a turn may call, and [`run`]
//! carries out the turn's decisions.

pub mod address;
pub mod checks;
pub mod frames;
pub mod json_schema;
pub mod record;
pub mod request;
pub mod run;
pub mod stream;
pub mod tables;
pub mod tools;
pub mod turn;

#[cfg(test)]
mod recorded;
