//! The row of a session, and the related rows outside the log: the change feed, the state
//! of its last turn, its failed turns, its usage, and the digests of its paths. The events
//! are in `log`.

pub mod activity;
pub mod changes;
pub mod last_turns;
pub mod learn_due;
pub mod meter;
pub mod numbers;
pub mod open_turns;
pub mod path_digests;
pub mod retention;
pub mod spending;
pub mod stored_turns;
pub mod usage;
pub mod usage_days;
