//! The row of a session, and the rows beside it that no event holds: the feed of its changes, the
//! state of its last turn, the turns that failed, its usage, and the digests of its paths. The events
//! are in `log`.

pub mod activity;
pub mod changes;
pub mod kept_turns;
pub mod last_turns;
pub mod learn_due;
pub mod meter;
pub mod numbers;
pub mod open_turns;
pub mod path_digests;
pub mod retention;
pub mod spending;
pub mod usage;
pub mod usage_days;
