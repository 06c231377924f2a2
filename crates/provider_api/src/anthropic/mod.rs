//! Anthropic's Messages.

pub mod answer;
pub mod count;
pub mod request;
