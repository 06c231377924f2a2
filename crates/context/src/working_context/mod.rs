//! The working context: the messages that one turn sends to a model. It is built from the newest
//! events of a branch and discarded afterward. Only the turn's new messages are written back.

pub mod budget;
pub mod build;
pub mod documents;
pub mod fast_path;
mod fit;
pub mod fitting;
pub mod media;
pub mod message;
mod reading;
mod squeeze;
pub mod truncate;
mod window;
