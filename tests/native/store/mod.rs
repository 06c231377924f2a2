//! Tables: migrations, older objects, the change feed.

mod blank;
pub mod carry_over;
mod clock;
pub mod feed;
pub mod full;
mod newer;
mod newest;
mod prepared;
pub mod tables;
pub mod upgrades;
