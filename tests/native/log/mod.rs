//! Sessions and their events.

pub mod events;
pub mod media;
pub mod row_numbers;
pub mod session_pages;
pub mod sessions;
