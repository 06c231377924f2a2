//! OpenAI's Chat Completions and Responses.

pub mod answer;
mod extra_output;
pub mod referred_items;
pub mod request;
pub mod responses_answer;
mod responses_input;
mod responses_items;
mod responses_native;
pub mod responses_request;
pub mod responses_stored;
pub mod responses_tools;
