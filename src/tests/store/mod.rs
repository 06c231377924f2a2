//! Tables: migrations, older objects, the change feed.

pub mod carry_over;
pub mod feed;
pub mod full;
mod prepared;
pub mod tables;
pub mod upgrades;
