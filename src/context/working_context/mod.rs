//! The working context: what one turn sends to a model. It is built from the newest
//! events of a branch and thrown away afterwards. Only what the turn added is written
//! back.

pub mod build;
mod documents;
pub mod message;
mod truncate;
mod window;
