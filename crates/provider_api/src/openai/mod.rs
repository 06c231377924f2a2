//! OpenAI's Chat Completions and Responses.

pub mod answer;
pub mod referred_items;
pub mod request;
pub mod responses_answer;
mod responses_input;
pub mod responses_request;
pub mod responses_stored;
mod said_beside;
