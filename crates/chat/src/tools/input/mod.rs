//! The questions of a tool to the user in a chat turn.
//!
//! A tool asks by returning a result of the type `input_required`. The turn then ends, as it does
//! for a client's tool. The client shows the questions, and sends the answers in its next request.
//! The call is repeated with them.
//!
//! Invariant: a server is untrusted. Its questions are parsed into a few kinds of fields, and only
//! these reach a client: as data, within limits. A client's answers fit the questions that were
//! asked. Only the tool receives them, and they never become its output.

pub mod answers;
pub mod form;
pub mod question;
