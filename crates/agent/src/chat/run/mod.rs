//! Running turns: what a request makes of them, what drives them, who listens, how they end,
//! and how they go on after the object died.

pub mod accept;
mod answer_log;
pub mod callbacks;
pub mod context;
pub mod driver;
pub mod early;
mod ending;
pub mod recover;
pub mod retell;
pub mod running_turns;
pub mod work;
