//! The frames of a socket: JSON texts with a `type`.
//!
//! Clients expect some things of them that are not obvious:
//!
//! - The first frame is the identity; a client's `ready` waits for it.
//! - The client chooses a request's id. Every socket gets every turn: the one that made
//!   the request matches it by the id. The others are onlookers and are sent the
//!   history (`cf_agent_chat_messages`) when it has changed.
//! - `body` of a response is a chunk's JSON as text; with `error` it is a sentence.
//!   After `done` no frame follows under that id.
//! - A frame marked `replay` is sent only to a client that has acknowledged. The replay
//!   of a running turn ends with `replayComplete`, that of a finished turn with `done`.
//!   `seq` numbers the chunks of a turn from 0, so a client that has some chunks of a
//!   continuation takes only the rest.
//! - The `probeId` of a `resume_request` is repeated to the client that asked, and to
//!   nobody else.

pub mod incoming;
pub mod outgoing;
pub mod sdk;
