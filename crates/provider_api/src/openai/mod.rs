//! OpenAI's Chat Completions.

pub mod answer;
pub mod request;
