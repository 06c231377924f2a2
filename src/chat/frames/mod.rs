//! The frames of a socket: JSON texts that name their `type`.
//!
//! What the clients do with them, where it is not to be guessed:
//!
//! - The first frame they want is the identity; a client's `ready` waits for it.
//! - A request's id is the client's. Every socket hears every turn: the one whose
//!   request it is by that id, the others as onlookers, who are sent the history
//!   (`cf_agent_chat_messages`) when it has changed.
//! - `body` of a response is a chunk's JSON as text; with `error` it is a sentence.
//!   After `done` nothing more is heard under that id.
//! - A frame marked `replay` is heard only by who has acknowledged; a replay of a
//!   turn that still runs ends with `replayComplete`, of one that is over with
//!   `done`. `seq` numbers the chunks of a turn from 0, so that a client that has
//!   some of a continuation takes the rest.
//! - What `resume_request` is asked under (`probeId`) is repeated to whoever asked,
//!   and to nobody else.

pub mod incoming;
pub mod outgoing;
