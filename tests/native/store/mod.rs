//! Tables: migrations, older objects, the change feed.

mod clock;
pub mod feed;
mod new_object;
mod newer_build;
mod prepared_statements;
pub mod sdk_migration;
pub mod storage_full;
pub mod tables;
mod unused_agent;
pub mod upgrades;
