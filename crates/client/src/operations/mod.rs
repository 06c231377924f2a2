//! Every operation: a struct of what it takes, named as the operation, and its answer.
//!
//! `node scripts/crate.mjs` writes this folder from the API's own document.

mod agent;
mod blocks;
mod blocks_shapes;
mod branches;
mod codes;
mod compaction;
mod context;
mod directory;
mod entries;
mod events;
mod feed;
mod forgetting;
mod keeping;
mod keeping_shapes;
mod later_shapes;
mod learning;
mod messages;
mod prompt;
mod search;
mod sessions;
mod sessions_shapes;
mod settings;
mod settings_shapes;
mod shapes;
mod skills;
mod tools;
mod turns;

pub use self::agent::*;
pub use self::blocks::*;
pub use self::blocks_shapes::*;
pub use self::branches::*;
pub use self::codes::Code;
pub use self::compaction::*;
pub use self::context::*;
pub use self::directory::*;
pub use self::entries::*;
pub use self::events::*;
pub use self::feed::*;
pub use self::forgetting::*;
pub use self::keeping::*;
pub use self::keeping_shapes::*;
pub use self::later_shapes::*;
pub use self::learning::*;
pub use self::messages::*;
pub use self::prompt::*;
pub use self::search::*;
pub use self::sessions::*;
pub use self::sessions_shapes::*;
pub use self::settings::*;
pub use self::settings_shapes::*;
pub use self::shapes::*;
pub use self::skills::*;
pub use self::tools::*;
pub use self::turns::*;
