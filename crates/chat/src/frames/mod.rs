//! The frames of a socket: JSON texts with a `type`.
//!
//! Clients rely on some rules that are not obvious:
//!
//! - The first frame is the identity; a client's `ready` waits for it.
//! - The client chooses a request's id. Every socket receives every turn: the one that made
//!   the request matches it by the id. The others are observers, and receive the history
//!   (`cf_agent_chat_messages`) when it has changed.
//! - `body` of a response is a chunk's JSON as text; with `error` it is an error message.
//!   After `done`, no frame follows with that id.
//! - A frame with `replay` is only sent to a client that has acknowledged the turn. The
//!   replay of a running turn ends with `replayComplete`, that of a finished turn with
//!   `done`. `seq` numbers the chunks of a turn from 0, so a client that has some chunks of
//!   a continuation uses only the rest.
//! - The `probeId` of a `resume_request` is returned only to the client that sent it.

pub mod incoming;
pub mod outgoing;
pub mod sdk;
