//! Sessions and their events.

pub mod events;
pub mod media;
pub mod numbers;
pub mod sessions;
