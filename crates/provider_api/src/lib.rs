//! The base URL: requests in the APIs of OpenAI and Anthropic, which clients of those APIs send
//! here unchanged. A request becomes a turn (`chat`), and the output of the turn's model becomes an
//! answer of the API. This crate contains no agent loop: turns are queued, canceled, compacted,
//! limited and recorded like all others.
//!
//! - [`request`] is the common form of requests: a history of items, tools, a system
//!   prompt, and fields that are passed through. `openai` and `anthropic` parse their API's
//!   requests and render its answers.
//! - `history_position` finds the session, and the position in its log where a history continues.
//! - [`begin`] starts the turn, or joins the one that an identical request started.
//!   [`listener`] follows it.
//! - [`queue`] queues a request until its session's turn ends, if the agent is configured
//!   so.
//! - [`refusal`] renders errors in the API's shape and with its status.

pub mod anthropic;
pub mod begin;
pub mod calls;
mod events;
mod history;
mod history_position;
pub mod listener;
pub mod models_list;
mod numbers;
pub mod openai;
pub mod queue;
pub mod refusal;
pub mod request;
mod stored_answer;
