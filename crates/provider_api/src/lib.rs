//! The base URL: requests in the APIs of OpenAI and Anthropic, which clients of those APIs send
//! here unchanged. A request becomes a turn (`chat`), and what the turn's model says becomes an
//! answer of the API. No loop runs here: a turn is asked, cut off, compacted, limited and recorded
//! like every other.
//!
//! - [`request`] is what both APIs say: a history of items, tools, a system prompt, and fields that
//!   go through. `openai` and `anthropic` read their API's requests and write its answers.
//! - `place` finds the session and the place in its log where a history goes on.
//! - [`begin`] begins the turn, or joins the one that the same request began. [`listener`] follows
//!   it.
//! - [`waiting`] has a request wait for the end of its session's turn, where the agent is configured
//!   so.
//! - [`refusal`] writes errors in the API's shape and with its status.

pub mod anthropic;
pub mod begin;
pub mod calls;
mod events;
mod history;
pub mod listener;
pub mod models_list;
mod numbers;
pub mod openai;
mod place;
pub mod refusal;
pub mod request;
mod stored_answer;
pub mod waiting;
